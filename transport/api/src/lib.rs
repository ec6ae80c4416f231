//! The clients' door: an OpenAI-shaped API over HTTP/3, HTTP/2 and HTTP/1.1.
