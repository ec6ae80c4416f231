//! How a worker is made: at its start, after every end of one, and for another role.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::Result;
use kv::Hub;
use kv_ucx::Ucx;
use mesh::Credentials;
use model::ModelFile;
use runtime::{BuildWorker, Clock, WorkerSpec};
use tracing::{info, info_span, warn};
use wire::Role;

use super::shelf::{Kept, Shelf};
use super::worker::{Carrier, parts};
use super::{backend, identity, mesh_config, worker};
use crate::config::Config;
use crate::renewal::Renewals;

/// How long the backend of a worker that changes its role may take to come back: its engine ends within a step, its transfer with its
/// connections. Else the weights are loaded anew.
const BACK_PATIENCE: Duration = Duration::from_secs(10);

/// How a worker's KV moves.
#[derive(Clone)]
pub(crate) enum Transport {
    /// Between workers of this process.
    Hub(Hub),
    /// Between processes, where its role needs that; UCX as soon as it is loaded.
    Own(Arc<OnceLock<Arc<Ucx>>>),
}

impl Transport {
    /// Of a process of its own that has UCX, or needs none so far.
    pub(crate) fn own(ucx: Option<Arc<Ucx>>) -> Self {
        Self::Own(Arc::new(ucx.map_or_else(OnceLock::new, OnceLock::from)))
    }

    /// What carries KV in this role. May load UCX, and does not fetch it.
    fn carrier(&self, config: &Config, role: Role) -> Result<Carrier> {
        match (self, role) {
            (Self::Hub(hub), _) => Ok(Carrier::Hub(hub.clone())),
            // It pulls from nobody, and nobody pulls from it.
            (Self::Own(_), Role::Mixed) => Ok(Carrier::Hub(Hub::default())),
            (Self::Own(loaded), _) => {
                if let Some(ucx) = loaded.get() {
                    return Ok(Carrier::Ucx(Arc::clone(ucx)));
                }
                let ucx = worker::ucx_here(config)?;
                Ok(Carrier::Ucx(Arc::clone(loaded.get_or_init(|| ucx))))
            }
        }
    }
}

/// A worker of this process, of which one incarnation after the other may be built.
pub(crate) struct Place {
    pub(crate) name: String,
    /// At first.
    pub(crate) role: Role,
    pub(crate) transport: Transport,
    /// Where operators find its process.
    pub(crate) admin: SocketAddr,
}

/// The recipe for a worker, which its pool follows. Its certificates are looked at from now on.
pub(crate) fn recipe(
    config: &Config,
    place: Place,
    model: Arc<ModelFile>,
    clock: Clock,
    renewals: &mut Renewals,
) -> Result<BuildWorker> {
    let files = identity::node_files(config);
    let first = client(config, &place.name, place.role)?;
    let recipe = Arc::new(Recipe {
        config: config.clone(),
        role: Mutex::new(place.role),
        place,
        model,
        clock,
        credentials: Credentials::from(first),
        shelf: Shelf::default(),
    });
    if let Some(files) = files {
        let renewed = Arc::clone(&recipe);
        renewals.watch("mesh", files, Box::new(move || renewed.renew(renewed.role())));
    }
    Ok(recipe)
}

/// What a worker shows gateways, as the certificates are now.
///
/// # Errors
/// If they are none for it in this role.
fn client(config: &Config, name: &str, role: Role) -> Result<quinn::ClientConfig> {
    let identity = identity::node(config, name, role)?;
    Ok(mesh::client_config(&identity, &mesh_config(config)?)?)
}

struct Recipe {
    config: Config,
    place: Place,
    /// Of the last one that was built, or is about to be.
    role: Mutex<Role>,
    model: Arc<ModelFile>,
    clock: Clock,
    credentials: Credentials,
    shelf: Shelf,
}

impl runtime::Recipe for Recipe {
    fn allows(&self, role: Role) -> Result<(), String> {
        let allowed = client(&self.config, &self.place.name, role)
            .and_then(|_| self.place.transport.carrier(&self.config, role));
        allowed.map(|_| ()).map_err(|error| format!("{error:#}"))
    }

    fn build(&self, role: Role) -> Result<WorkerSpec, String> {
        self.built(role).map_err(|error| format!("{error:#}"))
    }
}

impl Recipe {
    fn role(&self) -> Role {
        *self.role.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever dials from now on shows the certificates of now.
    fn renew(&self, role: Role) -> Result<()> {
        self.credentials
            .renew(client(&self.config, &self.place.name, role)?);
        Ok(())
    }

    fn built(&self, role: Role) -> Result<WorkerSpec> {
        let changes = role != self.role();
        if changes {
            self.renew(role)?;
            *self.role.lock().unwrap_or_else(PoisonError::into_inner) = role;
        }
        let carrier = self.place.transport.carrier(&self.config, role)?;
        let kept = match changes {
            true => self.kept(role),
            // It ended, and nothing of it is believed.
            false => {
                self.shelf.clear();
                None
            }
        };
        let (name, config) = (&*self.place.name, &self.config);
        let kept = match kept {
            Some(kept) => kept,
            None => info_span!(parent: None, "load_model", name, role = %role)
                .in_scope(|| backend::build(config, &self.model))?,
        };
        let numerics = kept.1.clone();
        let backend = self.shelf.lend(kept);
        #[cfg(feature = "faults")]
        let backend = Box::new(crate::faults::Disturbed(backend));
        parts(
            config,
            &self.place,
            (role, self.clock),
            (backend, numerics),
            carrier,
            &self.credentials,
        )
    }

    /// The backend of the role before.
    fn kept(&self, role: Role) -> Option<Kept> {
        let name = &*self.place.name;
        let kept = self.shelf.take(BACK_PATIENCE);
        match &kept {
            Some(_) => info!(name, %role, "another role: its weights stay loaded"),
            None => {
                warn!(name, %role, "another role: its weights are loaded anew, as its engine or its transfer did not end");
            }
        }
        kept
    }
}
