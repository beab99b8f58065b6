//! One run: a plan and a seed, on a thread of its own, to a verdict.
//!
//! A run is a safety phase (clients work, faults strike), a healing, and a liveness phase. Then the judge reads the
//! history; what the run itself noticed (a panic, no progress, too little seen) comes after the judge's objections.

use crate::clients::{self, SetupFailure};
use crate::cluster::{Cluster, travel};
use crate::expect::{Seen, longest_gap};
use crate::labels::Labels;
use crate::log::{NOTHING_CAN_HAPPEN, TIME_IS_OVER};
use crate::plan::Plan;
use crate::recorder::{Record, Recorder};
use crate::stop::Stop;
use crate::windows::Passages;
use crate::world::World;
use crate::{faults, liveness, syscall_shim};
use gatehouse::planted::{Bug, plant};
use gatehouse_judge::checker::Staleness;
use gatehouse_judge::history::{FORMAT_VERSION, Header, History, What};
use gatehouse_judge::history_file::FORMAT;
use gatehouse_judge::marks;
use gatehouse_judge::marks::Marks;
use gatehouse_judge::verdict::{Verdict, VerdictKind};
use gatehouse_judge::{Judgement, examine};
use std::any::Any;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tracing::Dispatch;

/// Stack of the thread that simulates: the whole cluster runs on it, deep futures included.
const SIMULATION_STACK: usize = 8 << 20;

/// Stack of the thread that judges: its search goes deep.
const JUDGE_STACK: usize = 64 << 20;

/// What a run depends on besides plan and seed. None of it but the bug may change the trace hash.
#[derive(Clone, Default)]
pub struct Options {
    /// The planted bug; the plan's own with `None`.
    pub bug: Option<Bug>,
    /// Leaves the scenario's own expectations out, so that only the properties judge.
    pub general: bool,
    /// Keeps the lines of the trace, to see where two of them part.
    pub keep_trace: bool,
    /// Where the log goes, if anywhere.
    pub log: Option<Dispatch>,
}

/// A run that is over.
#[derive(Clone, Debug)]
pub struct Run {
    /// The plan's name.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// The planted bug.
    pub bug: Option<&'static str>,
    /// What came of it.
    pub verdict: Verdict,
    /// Hash over everything that happened.
    pub trace_hash: u64,
    /// Calls that clients made.
    pub ops: u64,
    /// Virtual time of the last event.
    pub virtual_time: Duration,
    /// Real time, judging included.
    pub wall_time: Duration,
    /// What went into the hash, a line each, if it was to be kept.
    pub trace: Vec<String>,
    /// How often each named window was passed, and each mark of [`marks`] is in the history.
    pub marks: Marks,
    /// How long revocations took to reach every member, as far as local reads showed it.
    pub staleness: Staleness,
    /// What happened.
    pub history: History,
}

impl Run {
    /// Whether the judge found the planted bug: an objection of a property, not a crash and not a lack of progress.
    pub fn found_bug(&self) -> bool {
        self.bug.is_some()
            && self.verdict.kind == VerdictKind::Violation
            && self.verdict.property.as_deref() != Some(PANIC)
    }
}

/// Names of what a run itself objects to, where a property of the judge would stand.
const PANIC: &str = "panic";
const PROGRESS: &str = "P17";
const DURABILITY: &str = "P11";
const SCENARIO: &str = "scenario";
const COVERAGE: &str = "coverage";

/// How the simulation ended, if it came to its end.
struct Ended {
    setup: Result<(), SetupFailure>,
    liveness: Result<(), liveness::Failure>,
}

/// Runs `plan` with `seed`.
pub fn run(plan: &Arc<Plan>, seed: u64, options: &Options) -> Run {
    syscall_shim::install();
    let start = Instant::now();
    let planned = || {
        plan.bug
            .as_deref()
            .and_then(|slug| Bug::named(slug).first().copied())
    };
    let bug = options.bug.or_else(planned);
    let recorder = Recorder::default();
    if options.keep_trace {
        recorder.keep_trace();
    }
    let (ended, mut marks) = simulate(plan, seed, bug, options.log.clone(), &recorder);
    let mut record = recorder.take();
    let trace = record.trace.take_lines();
    let header = Header {
        format: FORMAT.to_owned(),
        version: FORMAT_VERSION,
        scenario: plan.name.clone(),
        seed,
        bug: bug.map(|bug| bug.slug().to_owned()),
        members: plan.cluster.members,
        tokens: plan.token_rules(),
    };
    let (trace_hash, ops, virtual_time) = (record.trace.digest(), record.calls, record.elapsed);
    let own = own_objection(plan, options, &ended, &record);
    let history = record.into_history(header);
    marks.extend(marks::of_history(&history));
    let Judgement {
        verdict: judged,
        staleness,
    } = judged(&history);
    let verdict = match judged.kind {
        VerdictKind::Violation => judged,
        _ => own
            .or_else(|| own_expectations(plan, options, &history, &marks))
            .unwrap_or(judged),
    };
    Run {
        scenario: plan.name.clone(),
        seed,
        bug: bug.map(Bug::slug),
        verdict,
        trace_hash,
        trace,
        ops,
        virtual_time,
        wall_time: start.elapsed(),
        marks,
        staleness,
        history,
    }
}

/// Simulates on a fresh thread: thread-local generators and hash tables of an earlier run would shift this one.
fn simulate(
    plan: &Arc<Plan>,
    seed: u64,
    bug: Option<Bug>,
    log: Option<Dispatch>,
    recorder: &Recorder,
) -> (thread::Result<Ended>, Marks) {
    let (marked, marks) = std::sync::mpsc::channel();
    let (plan, recorder) = (Arc::clone(plan), recorder.clone());
    let simulation = move || {
        plant(bug);
        let passages = Passages::install(&plan, seed);
        // The receiver outlives the thread.
        let _ = marked.send(passages);
        let mut config = madsim::Config::default();
        config.net.send_latency = travel(plan.network.latency_ms);
        config.net.packet_loss_rate = plan.network.loss;
        let simulate = || {
            let mut runtime = madsim::runtime::Runtime::with_seed_and_config(seed, config);
            runtime.set_time_limit(Duration::from_millis(plan.limit_ms));
            runtime.block_on(phases(plan, seed, recorder))
        };
        // The runtime is made under the log, since it makes spans that later ones belong to.
        match log {
            Some(log) => tracing::dispatcher::with_default(&log, simulate),
            None => simulate(),
        }
    };
    let thread = thread::Builder::new()
        .name(format!("seed-{seed}"))
        .stack_size(SIMULATION_STACK);
    let ended = match thread.spawn(simulation) {
        Ok(running) => running.join(),
        Err(error) => {
            Err(Box::new(format!("no thread for the simulation: {error}")) as Box<dyn Any + Send>)
        }
    };
    let marks = marks
        .try_recv()
        .map(|passages| passages.marks())
        .unwrap_or_default();
    (ended, marks)
}

async fn phases(plan: Arc<Plan>, seed: u64, recorder: Recorder) -> Ended {
    let world = Arc::new(World {
        cluster: Cluster::boot(&plan, seed, &recorder),
        labels: Labels::new(&plan),
        plan,
        seed,
        recorder,
    });
    let clients = world.cluster.clients().clone();
    let setup = clients.spawn(clients::set_up(Arc::clone(&world))).await;
    let setup = setup.unwrap_or_else(|error| Err(SetupFailure::Stuck(error.to_string())));
    if setup.is_ok() {
        safety(&world).await;
    }
    world.cluster.heal();
    world.recorder.event(What::Healed);
    let liveness = if setup.is_ok() {
        liveness::prove(&world).await
    } else {
        Ok(())
    };
    world.recorder.facts(&world.cluster.facts());
    world.recorder.facts(&[madsim::rand::random()]);
    world.cluster.switch_off().await;
    Ended { setup, liveness }
}

/// Clients work and faults strike, until every client is done.
async fn safety(world: &Arc<World>) {
    let faults = faults::start(world);
    let machine = world.cluster.clients();
    let planned = world.plan.clients.iter().enumerate();
    let named = planned.flat_map(|(planned, client)| {
        let names = client.names().into_iter();
        names.map(move |name| (planned, name))
    });
    let clients: Vec<_> = (1..)
        .zip(named)
        .map(|(number, (planned, name))| {
            machine.spawn(clients::run(Arc::clone(world), planned, name, number))
        })
        .collect();
    for client in clients {
        // Nothing aborts a client, and one that panics ends the whole simulation.
        let _ = client.await;
    }
    for fault in faults {
        fault.abort();
    }
}

/// What the run itself noticed, whatever the scenario expects.
fn own_objection(
    plan: &Plan,
    options: &Options,
    ended: &thread::Result<Ended>,
    record: &Record,
) -> Option<Verdict> {
    let ended = match ended {
        Ok(ended) => ended,
        Err(payload) => return Some(panicked(plan, payload.as_ref())),
    };
    if let Some((member, stop, cause)) = record.stopped.first() {
        let sentence = format!("n{member} stopped by itself: {cause}");
        return Some(match stop {
            // Nothing but time and power cuts has touched its disk, so the member has not kept what it promised to keep.
            Stop::Store => objection(VerdictKind::Violation, DURABILITY, sentence),
            Stop::Disk | Stop::Other => objection(VerdictKind::Stuck, PROGRESS, sentence),
        });
    }
    match &ended.setup {
        Ok(()) => {}
        Err(SetupFailure::Refused(sentence)) => {
            return Some(objection(VerdictKind::Undecided, "setup", sentence.clone()));
        }
        Err(SetupFailure::Stuck(sentence)) => {
            return Some(objection(VerdictKind::Stuck, PROGRESS, sentence.clone()));
        }
    }
    if let Err(sentence) = &ended.liveness {
        return Some(objection(VerdictKind::Stuck, PROGRESS, sentence.clone()));
    }
    if record.overflowed {
        let sentence = format!("more than {} events", crate::recorder::EVENTS_MAX);
        return Some(objection(VerdictKind::Undecided, "history", sentence));
    }
    match record.unmet.first() {
        Some((call, sentence)) if !options.general => Some(Verdict {
            calls: vec![*call],
            ..objection(VerdictKind::Violation, SCENARIO, sentence.clone())
        }),
        _ => None,
    }
}

/// A run that ended in a panic: no progress if the runtime itself gave up, a violation if the server or the harness broke.
fn panicked(plan: &Plan, payload: &(dyn Any + Send)) -> Verdict {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message");
    if text.starts_with(TIME_IS_OVER) {
        let sentence = format!(
            "the run was not over after {} ms of virtual time",
            plan.limit_ms
        );
        objection(VerdictKind::Stuck, PROGRESS, sentence)
    } else if text.starts_with(NOTHING_CAN_HAPPEN) {
        objection(
            VerdictKind::Stuck,
            PROGRESS,
            "everybody waits and nothing will ever happen".to_owned(),
        )
    } else {
        objection(VerdictKind::Violation, PANIC, format!("panic: {text}"))
    }
}

/// What the scenario expects of a run to which nobody else objects.
fn own_expectations(
    plan: &Plan,
    options: &Options,
    history: &History,
    marks: &Marks,
) -> Option<Verdict> {
    if let Some(most) = plan.expect.max_gap_ms.filter(|_| !options.general)
        && let Some(gap) = longest_gap(plan, history)
        && gap.lasted > Duration::from_millis(most)
    {
        let sentence = format!(
            "client \"{}\" got no answer for {} ms from call {} on; the scenario allows {most} ms",
            gap.client,
            gap.lasted.as_millis(),
            gap.call
        );
        return Some(Verdict {
            calls: vec![gap.call],
            ..objection(VerdictKind::Stuck, PROGRESS, sentence)
        });
    }
    let shortfall = Seen::count(plan, history).shortfall(&plan.expect, marks)?;
    Some(objection(VerdictKind::Undecided, COVERAGE, shortfall))
}

fn objection(kind: VerdictKind, property: &str, sentence: String) -> Verdict {
    Verdict {
        kind,
        property: Some(property.to_owned()),
        sentence,
        calls: Vec::new(),
        explanation: Vec::new(),
    }
}

/// The judge's verdict and figures, on a thread with room for its search. A judge that panics has not decided.
fn judged(history: &History) -> Judgement {
    let failed = |sentence: String| Judgement {
        verdict: objection(VerdictKind::Undecided, "judge", sentence),
        staleness: Staleness::default(),
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("judge".to_owned())
            .stack_size(JUDGE_STACK);
        match thread.spawn_scoped(scope, || examine(history)) {
            Ok(judging) => judging
                .join()
                .unwrap_or_else(|_| failed("the judge panicked; see stderr".to_owned())),
            Err(error) => failed(format!("no thread for the judge: {error}")),
        }
    })
}
