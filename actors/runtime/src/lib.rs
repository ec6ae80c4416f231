//! Rooms as ractor actors: performs what room decides, feeds it what happens.
