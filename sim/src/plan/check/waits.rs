//! Refuses plans whose steps wait for each other.

use super::{Checked, Plan, wrong};
use crate::plan::{Client, Step};
use std::collections::BTreeSet;

impl Plan {
    /// Plays the clients without their calls: if at some point nobody can go on, steps wait for each other.
    pub(super) fn check_waits(&self) -> Checked {
        let mut done: BTreeSet<&str> = self
            .setup
            .iter()
            .filter_map(|step| step.when.label.as_deref())
            .collect();
        let mut at: Vec<(&Client, &[Step])> = self
            .clients
            .iter()
            .map(|client| (client, client.steps.as_slice()))
            .collect();
        match advance(&mut at, &mut done) {
            Some((field, label)) => wrong(
                field,
                format!("\"{label}\" never comes: steps wait for each other and none can go on"),
            ),
            None => Ok(()),
        }
    }
}

/// Takes steps off the clients for as long as one of them can go on; names the first field that cannot come true, and the
/// label that it waits for.
fn advance<'p>(
    clients: &mut Vec<(&'p Client, &'p [Step])>,
    done: &mut BTreeSet<&'p str>,
) -> Option<(String, &'p str)> {
    loop {
        let mut moved = false;
        for (_, steps) in clients.iter_mut() {
            while let Some((step, rest)) = steps.split_first()
                && step.awaited().all(|label| done.contains(label))
            {
                done.extend(step.when.label.as_deref());
                *steps = rest;
                moved = true;
            }
        }
        clients.retain(|(_, steps)| !steps.is_empty());
        let (client, steps) = clients.first()?;
        if !moved {
            let step = client.steps.len() - steps.len() + 1;
            let mut waits = steps[0].waits();
            let (field, label) = waits.find(|(_, label)| !done.contains(label))?;
            let name = &client.name;
            return Some((format!("client \"{name}\", step {step}, {field}"), label));
        }
    }
}
