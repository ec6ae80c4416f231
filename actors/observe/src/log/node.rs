//! What happens to a node, as lines.

use ::room::HostCounters;
use tracing::{debug, error, info, warn};

use crate::event::{LinkEnd, NodeWhat, Text, WorkerEnd};
use crate::labels;
use crate::roster::Roster;

const TARGET: &str = "runtime::node";

#[expect(clippy::too_many_lines, reason = "a table: one entry a kind")]
pub(super) fn write(what: &NodeWhat, roster: &Roster) {
    match what {
        NodeWhat::RequestRefused {
            request_id,
            trace,
            why,
        } => {
            let (request_id, why) = (&**request_id, labels::refused_because(*why));
            let trace_id = trace.map(tracing::field::display);
            warn!(target: TARGET, request_id, trace_id, why, "a request got no room");
        }
        NodeWhat::WorkerLinked {
            worker,
            name,
            role,
            blocks,
            ..
        } => {
            info!(target: TARGET, worker = &**name, node = %worker, role = labels::role(*role), blocks, "a worker is linked");
        }
        NodeWhat::WorkerRefused { worker, name, why } => {
            warn!(target: TARGET, worker = &**name, node = %worker, why = &**why, "a worker came as another did, and does not fit");
        }
        NodeWhat::WorkerLeaving { worker, name, why } => {
            info!(target: TARGET, worker = &**name, node = %worker, why = &**why, "a worker is leaving");
        }
        NodeWhat::Fencing { worker, why } => {
            warn!(target: TARGET, worker = &*roster.called(*worker), node = %worker, why = &**why, "a worker is cut off");
        }
        NodeWhat::WorkerUnlinked {
            worker,
            name,
            end,
            why,
        } => match end {
            LinkEnd::InOrder => {
                info!(target: TARGET, worker = &**name, node = %worker, why = &**why, "a worker's link has ended");
            }
            LinkEnd::Fence => {
                warn!(target: TARGET, worker = &**name, node = %worker, why = &**why, "a worker is fenced");
            }
            LinkEnd::Loss => {
                warn!(target: TARGET, worker = &**name, node = %worker, why = &**why, "a worker is lost");
            }
        },
        NodeWhat::MailDropped { seq } => {
            debug!(target: TARGET, seq, "dropped: the owner of the room does not read its mail");
        }
        NodeWhat::GatewayLinked {
            name,
            gateway,
            gateways,
        } => info!(target: TARGET, worker = &**name, %gateway, gateways, "linked with a gateway"),
        NodeWhat::GatewayLeaving { name, gateway, why } => {
            info!(target: TARGET, worker = &**name, %gateway, why = &**why, "a gateway is leaving");
        }
        NodeWhat::GatewayUnlinked {
            name,
            gateway,
            gateways,
            end,
            why,
        } => {
            let end = labels::link_end(*end);
            info!(target: TARGET, worker = &**name, %gateway, end, why = &**why, gateways, "a gateway's link is over");
        }
        NodeWhat::Step { .. } => {}
        NodeWhat::Counted { name, counters, .. } => counted(name, counters),
        NodeWhat::FrameNotSent { gateway, why } => {
            warn!(target: TARGET, %gateway, why = &**why, "a frame cannot be sent");
        }
        NodeWhat::Draining { name, why } => {
            info!(target: TARGET, worker = &**name, why = &**why, "no new rooms are taken");
        }
        NodeWhat::Undrained { name } => info!(target: TARGET, worker = &**name, "new rooms are taken again"),
        NodeWhat::EngineDown { name, why } => {
            error!(target: TARGET, worker = &**name, why = &**why, "the engine is down");
        }
        NodeWhat::EngineHangs { name, lasts } => {
            error!(target: TARGET, worker = &**name, lasts_ms = lasts.as_millis(), "the engine hangs in a step");
        }
        NodeWhat::TransferDown { name, why } => {
            error!(target: TARGET, worker = &**name, why = &**why, "the KV transfer is down");
        }
        NodeWhat::WorkerStarted { name, worker } => {
            info!(target: TARGET, worker = &**name, node = %worker, "the worker runs");
        }
        NodeWhat::WorkerEnded { name, why, then } => match then {
            WorkerEnd::Restarts { after } => {
                warn!(target: TARGET, worker = &**name, why = &**why, pause_ms = after.as_millis(), "the worker ended; a new one is started");
            }
            WorkerEnd::ChangesRole { role } => {
                let role = labels::role(*role);
                info!(target: TARGET, worker = &**name, role, "the worker begins anew in another role");
            }
            WorkerEnd::GivenUp => {
                error!(target: TARGET, worker = &**name, why = &**why, "the worker ends again and again");
            }
            WorkerEnd::Hangs { waited } => {
                error!(target: TARGET, worker = &**name, waited_s = waited.micros / 1_000_000, "the worker is not built by now");
            }
        },
        NodeWhat::NodeEnds { why } => error!(target: TARGET, why = &**why, "the node ends"),
    }
}

fn counted(name: &Text, counted: &HostCounters) {
    debug!(
        target: TARGET,
        worker = &**name,
        stale = counted.stale,
        unknown = counted.unknown,
        duplicates = counted.duplicates,
        out_of_order = counted.out_of_order,
        late_reports = counted.late_reports,
        refused = counted.refused,
        healed_by_digest = counted.healed_by_digest,
        ended_with_link = counted.ended_with_link,
        superseded = counted.superseded,
        evictions = counted.evictions,
        expired = counted.expired,
        proofs_overdue = counted.proofs_overdue,
        transitions_lost = counted.transitions_lost,
        "what the host counts"
    );
}
