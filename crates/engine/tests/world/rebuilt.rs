//! A second engine that receives all objects at once.

use engine::Event;

use crate::play::Player;
use crate::world::World;

impl World {
    /// A player with the same objects and reservations, with or without pending Workloads.
    pub(crate) fn fresh(&self, waiting: bool) -> Player {
        let mut other = Player::new();
        other.line(&self.settings);
        other.line("delete namespace ns");
        self.copy_names(&mut other);
        for event in self.player.known.values() {
            let event = self.with_admission(event);
            if let Event::Workload(_, spec) = &event
                && spec.admission.is_none()
                && !waiting
            {
                continue;
            }
            other.engine.apply(event);
        }
        other.capacities = self.player.capacities.clone();
        other
    }

    /// Ids equal those of the first engine, so that its events apply to the second.
    fn copy_names(&self, other: &mut Player) {
        let (from, to) = (self.player.engine.names(), other.engine.names_mut());
        macro_rules! copy {
            ($($table:ident),*) => {$(
                for id in 0..from.$table.len() {
                    let name = from.$table.name(id.into());
                    // Released ids have no name; a placeholder keeps them from being assigned here.
                    let stand_in = format!("released-{id}");
                    to.$table.intern(if name.is_empty() { &stand_in } else { name });
                }
            )*};
        }
        copy!(resources, flavors, queues, cohorts, local_queues, namespaces, workloads);
        copy!(topologies, nodes);
    }

    fn with_admission(&self, event: &Event) -> Event {
        let mut event = event.clone();
        if let Event::Workload(id, spec) = &mut event {
            spec.admission = self.player.engine.admission_spec(*id);
        }
        event
    }
}
