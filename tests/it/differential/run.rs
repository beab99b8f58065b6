//! Plays steps on both servers, compares their answers, and finds the row for each difference.

use super::request::{Answer, Request};
use super::step::{Caller, Side, Step};
use crate::differences::{Difference, Mend, Row};
use crate::etcd::{Etcd, Version};
use crate::harness::Cluster;
use std::collections::BTreeMap;

/// Both servers, new.
pub(super) struct Run {
    _etcd: Etcd,
    _cluster: Cluster,
    version: Version,
    etcd: Side,
    ours: Side,
    auth_on: bool,
    /// How often each row explained a difference.
    pub(super) explained: BTreeMap<&'static str, u64>,
    /// By name, how many calls were answered with success, and how many refused.
    pub(super) outcomes: BTreeMap<&'static str, [u64; 2]>,
}

/// A difference that no row explains.
pub(super) struct Unexplained {
    pub(super) step: Step,
    pub(super) etcd: Answer,
    pub(super) ours: Answer,
    /// The rows that explained a part of it.
    pub(super) rows: Vec<&'static str>,
    /// What could not be mended.
    pub(super) broken: String,
}

impl Run {
    /// Starts both servers.
    pub(super) fn start(version: Version) -> Run {
        let (etcd, cluster) = std::thread::scope(|scope| {
            let etcd = scope.spawn(Etcd::start);
            let cluster = Cluster::start_in_memory(&["--bcrypt-cost=4"]);
            (etcd.join().unwrap(), cluster)
        });
        Run {
            version,
            etcd: Side::new(&etcd.address()),
            ours: Side::new(&cluster.members[0].address()),
            _etcd: etcd,
            _cluster: cluster,
            auth_on: false,
            explained: BTreeMap::new(),
            outcomes: BTreeMap::new(),
        }
    }

    /// Makes one call on both, after which both hold the same. Gives the answer that says what was done.
    pub(super) async fn take(&mut self, step: &Step) -> Result<Answer, Box<Unexplained>> {
        let done = self.compare(step).await?;
        match &step.request {
            Request::AuthEnable(_) if done.outcome.is_ok() => self.auth_on = true,
            Request::AuthDisable(_) if done.outcome.is_ok() => self.auth_on = false,
            _ => {}
        }
        Ok(done)
    }

    async fn compare(&mut self, step: &Step) -> Result<Answer, Box<Unexplained>> {
        let (mut etcd, mut ours) = tokio::join!(self.etcd.take(step), self.ours.take(step));
        let counted = self.outcomes.entry(step.request.name()).or_default();
        counted[usize::from(ours.outcome.is_err())] += 1;
        let mut asked = step.clone();
        let mut rows: Vec<&'static str> = Vec::new();
        while !etcd.is_like(&ours) {
            let difference = Difference {
                version: self.version,
                auth_on: self.auth_on,
                step: &asked,
                etcd: &etcd,
                ours: &ours,
            };
            // Two rows may meet in one call; none explains it twice.
            let mut left = Row::all().filter(|row| !rows.contains(&row.id));
            let found = left.find_map(|row| Some((row.id, (row.explains?)(&difference)?)));
            let mended = match found {
                Some((id, mend)) => {
                    rows.push(id);
                    self.mend(mend, &asked.request, &mut etcd, &mut ours).await
                }
                None => Err(String::new()),
            };
            if let Err(broken) = mended {
                return Err(Box::new(Unexplained {
                    step: step.clone(),
                    etcd,
                    ours,
                    rows,
                    broken,
                }));
            }
            asked.caller = Caller::Administrator;
        }
        for row in rows {
            *self.explained.entry(row).or_default() += 1;
        }
        Ok(ours)
    }

    /// Makes both servers hold the same again, and gives the answers that are to be compared then.
    async fn mend(
        &mut self,
        mend: Mend,
        request: &Request,
        etcd: &mut Answer,
        ours: &mut Answer,
    ) -> Result<(), String> {
        match mend {
            Mend::Nothing => {}
            Mend::OursAsRoot => {
                *ours = self.ours.as_root(request).await;
                self.ours.keep(request, ours);
                return Ok(());
            }
            Mend::EtcdAsOurs => {
                *etcd = self.etcd.as_root(request).await;
                self.etcd.keep(request, etcd);
                return Ok(());
            }
            Mend::EtcdAsRoot(requests) => {
                for request in &requests {
                    let answer = self.etcd.as_root(request).await;
                    if let Err(refusal) = answer.outcome {
                        return Err(format!("etcd refuses {request:?}: {refusal}"));
                    }
                }
                // What was asked shows now what it shows here.
                if matches!(request, Request::RoleGet(_)) {
                    *etcd = self.etcd.as_root(request).await;
                    if etcd.lists() != ours.lists() {
                        return Err("etcd still differs".to_owned());
                    }
                }
            }
        }
        *etcd = ours.clone();
        Ok(())
    }
}
