//! The bounded Distro cluster of distrocheck, profile `strict`, written once more for stateright.
//!
//! It is an independent count: distinct states and transitions must be those of `distrocheck explore` within the same
//! bounds (`bench/explore.py` compares them and the speed). It follows `model/distro_model/bounded` and the rules one by
//! one, in the plain style of the language: small structs, sorted vectors, no tricks that a reader has to trust.

use stateright::{Checker, Model, Property};
use std::time::Instant;

type Node = usize; // position of a node; 0 is `a`
type Client = u8;
type Content = [u8; MOST_SERVICES]; // at each service: 0: nothing is published; v: the instance of the v-th change

const MOST_SERVICES: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Sync {
    Change,
    Delete,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Held {
    client: Client,
    native: bool,
    revision: u8,
    content: Content,
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Task {
    client: Client,
    target: Node,
    action: Sync,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct NodeState {
    loaded: bool,
    asking: Option<Node>,
    load_due: bool,
    missed: bool,
    clients: Vec<Held>, // by client
    tasks: Vec<Task>,   // by client and target
    gone: Vec<Client>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Request {
    Change { client: Client, revision: u8, content: Content },
    Delete { client: Client },
    Verify { client: Client, revision: u8 },
    Snapshot,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Sent,
    Lost,
    Refused,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Call {
    request: Request,
    phase: Phase,
    sent_as: Option<Content>, // ghost: what the owner published when a VERIFY was sent
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Link {
    down: bool,
    calls: Vec<Call>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Connection {
    New,
    Open,
    Ended,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Life {
    contents: Vec<Content>,
    changes_left: u8,
    connection: Connection,
    left_cleanly: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    nodes: Vec<Option<NodeState>>,
    links: Vec<Link>, // source * nodes + target
    lives: Vec<Life>,
    crashes: u8,
    drops: u8,
    swallows: u8,
}

enum Answer {
    Success(Vec<Held>),
    Fail,
    Timeout,
    Unreachable,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Action {
    Connect(usize),
    Register(usize, usize), // client and service
    Deregister(usize, usize),
    Disconnect(usize),
    Task(Node, usize),
    VerifyRound(Node),
    Load(Node),
    Crash(Node),
    Restart(Node),
    Deliver(Node, Node),
    Lose(Node, Node),
    Swallow(Node, Node),
    End(Node, Node, usize), // a call that was lost or refused, by its position
}

struct Cluster {
    nodes: usize,
    clients: usize,
    services: usize,
    changes: u8,
    crashes: u8,
    drops: u8,
    swallows: u8,
    in_flight: usize,
}

impl Cluster {
    fn home(&self, client: usize) -> Node {
        client % self.nodes
    }

    fn others(&self, node: Node) -> impl Iterator<Item = Node> {
        (0..self.nodes).filter(move |other| *other != node)
    }

    fn link(&self, source: Node, target: Node) -> usize {
        source * self.nodes + target
    }

    fn fits(&self, state: &State) -> bool {
        state.links.iter().all(|link| link.calls.len() <= self.in_flight)
    }

    fn send(&self, state: &mut State, source: Node, target: Node, request: Request) {
        let sent_as = match &request {
            Request::Verify { client, .. } => state.nodes[source].as_ref().and_then(|node| node.held(*client)).map(|held| held.content),
            _ => None,
        };
        let at = self.link(source, target);
        let link = &mut state.links[at];
        let phase = if link.down { Phase::Refused } else { Phase::Sent };
        link.calls.push(Call { request, phase, sent_as });
    }

    /// Queue the action for every other member.
    fn announce(&self, node: &mut NodeState, name: Node, client: Client, action: Sync) {
        for target in self.others(name) {
            node.queue(Task { client, target, action });
        }
    }

    fn load(&self, state: &mut State, name: Node) {
        let node = state.nodes[name].as_mut().unwrap();
        if node.loaded || node.asking.is_some() {
            return;
        }
        node.missed = false;
        self.ask_next(state, name, 0);
    }

    /// Ask the first other member from `from` on; when there is none, the load is over or is tried again.
    fn ask_next(&self, state: &mut State, name: Node, from: Node) {
        let next = self.others(name).find(|peer| *peer >= from);
        let node = state.nodes[name].as_mut().unwrap();
        node.load_due = false;
        node.asking = next;
        match next {
            Some(peer) => self.send(state, name, peer, Request::Snapshot),
            None if node.missed => node.load_due = true,
            None => node.finish_load(),
        }
    }

    fn receive(&self, state: &mut State, target: Node, request: &Request) -> Answer {
        let node = state.nodes[target].as_mut().unwrap();
        match *request {
            Request::Change { client, revision, content } => {
                if node.refuses(client) {
                    return Answer::Fail;
                }
                node.apply(client, revision, content);
                Answer::Success(vec![])
            }
            Request::Delete { client } => {
                if node.is_native(client) {
                    return Answer::Fail;
                }
                node.delete(client);
                Answer::Success(vec![])
            }
            Request::Verify { client, revision } => match node.held(client) {
                Some(held) if held.revision == revision => Answer::Success(vec![]),
                _ => Answer::Fail,
            },
            Request::Snapshot if !node.loaded => Answer::Fail,
            Request::Snapshot => Answer::Success(node.clients.clone()),
        }
    }

    /// The sender receives the result of its call.
    fn ended(&self, state: &mut State, source: Node, target: Node, request: &Request, answer: Answer) {
        let node = state.nodes[source].as_mut().unwrap();
        match (request, answer) {
            (Request::Change { .. } | Request::Delete { .. }, Answer::Success(_)) => {}
            (Request::Change { client, .. }, _) => node.retry(*client, target, Sync::Change),
            (Request::Delete { client }, _) => node.retry(*client, target, Sync::Delete),
            (Request::Verify { client, .. }, Answer::Fail) => {
                if node.is_native(*client) {
                    node.queue(Task { client: *client, target, action: Sync::Change });
                }
            }
            (Request::Verify { .. }, _) => {}
            (Request::Snapshot, Answer::Success(copies)) => {
                for copy in copies {
                    if !node.refuses(copy.client) {
                        node.apply(copy.client, copy.revision, copy.content);
                    }
                }
                node.finish_load();
            }
            (Request::Snapshot, answer) => {
                if !matches!(answer, Answer::Fail) {
                    node.missed = true;
                }
                self.ask_next(state, source, target + 1);
            }
        }
    }
}

impl NodeState {
    fn new(loaded: bool) -> NodeState {
        NodeState { loaded, asking: None, load_due: false, missed: false, clients: vec![], tasks: vec![], gone: vec![] }
    }

    fn held(&self, client: Client) -> Option<&Held> {
        self.clients.iter().find(|held| held.client == client)
    }

    fn is_native(&self, client: Client) -> bool {
        self.held(client).is_some_and(|held| held.native)
    }

    fn refuses(&self, client: Client) -> bool {
        self.is_native(client) || self.gone.contains(&client)
    }

    fn apply(&mut self, client: Client, revision: u8, content: Content) {
        match self.clients.binary_search_by_key(&client, |held| held.client) {
            Ok(at) => {
                self.clients[at].revision = revision;
                self.clients[at].content = content;
            }
            Err(at) => self.clients.insert(at, Held { client, native: false, revision, content }),
        }
    }

    fn delete(&mut self, client: Client) {
        self.clients.retain(|held| held.client != client);
        if let Err(at) = self.gone.binary_search(&client) {
            self.gone.insert(at, client);
        }
    }

    /// One task for each client and target: the newer one replaces the older.
    fn queue(&mut self, task: Task) {
        match self.tasks.binary_search_by_key(&(task.client, task.target), |other| (other.client, other.target)) {
            Ok(at) => self.tasks[at] = task,
            Err(at) => self.tasks.insert(at, task),
        }
    }

    fn retry(&mut self, client: Client, target: Node, action: Sync) {
        let deletes = self.tasks.iter().any(|task| (task.client, task.target, task.action) == (client, target, Sync::Delete));
        if !deletes {
            self.queue(Task { client, target, action });
        }
    }

    fn finish_load(&mut self) {
        self.loaded = true;
        self.asking = None;
        self.load_due = false;
        self.missed = false;
    }

    fn change(&mut self, client: Client, content: Content) {
        let held = self.clients.iter_mut().find(|held| held.client == client).unwrap();
        held.revision += 1;
        held.content = content;
    }
}

impl Model for Cluster {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let life = Life { contents: vec![[0; MOST_SERVICES]], changes_left: self.changes, connection: Connection::New, left_cleanly: false };
        vec![State {
            nodes: vec![Some(NodeState::new(true)); self.nodes],
            links: vec![Link::default(); self.nodes * self.nodes],
            lives: vec![life; self.clients],
            crashes: self.crashes,
            drops: self.drops,
            swallows: self.swallows,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (client, life) in state.lives.iter().enumerate() {
            if state.nodes[self.home(client)].is_none() {
                continue;
            }
            match life.connection {
                Connection::New => actions.push(Action::Connect(client)),
                Connection::Open => {
                    if life.changes_left > 0 {
                        for service in 0..self.services {
                            actions.push(Action::Register(client, service));
                            if life.contents.last().unwrap()[service] != 0 {
                                actions.push(Action::Deregister(client, service));
                            }
                        }
                    }
                    actions.push(Action::Disconnect(client));
                }
                Connection::Ended => {}
            }
        }
        for (name, node) in state.nodes.iter().enumerate() {
            match node {
                None => actions.push(Action::Restart(name)),
                Some(node) => {
                    actions.extend((0..node.tasks.len()).map(|task| Action::Task(name, task)));
                    if node.loaded && node.clients.iter().any(|held| held.native) {
                        actions.push(Action::VerifyRound(name));
                    }
                    if node.load_due {
                        actions.push(Action::Load(name));
                    }
                    if state.crashes > 0 {
                        actions.push(Action::Crash(name));
                    }
                }
            }
        }
        for source in 0..self.nodes {
            for target in self.others(source) {
                let calls = &state.links[self.link(source, target)].calls;
                if let Some(first) = calls.iter().find(|call| call.phase == Phase::Sent) {
                    actions.push(Action::Deliver(source, target));
                    if state.drops > 0 {
                        actions.push(Action::Lose(source, target));
                    }
                    if state.swallows > 0 && first.request != Request::Snapshot {
                        actions.push(Action::Swallow(source, target));
                    }
                }
                for (position, call) in calls.iter().enumerate() {
                    if call.phase != Phase::Sent && !calls[position + 1..].contains(call) {
                        actions.push(Action::End(source, target, position));
                    }
                }
            }
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Connect(client) => {
                state.lives[client].connection = Connection::Open;
                let node = state.nodes[self.home(client)].as_mut().unwrap();
                node.clients.push(Held { client: client as Client, native: true, revision: 0, content: [0; MOST_SERVICES] });
                node.clients.sort_by_key(|held| held.client);
            }
            Action::Register(client, service) | Action::Deregister(client, service) => {
                let life = &mut state.lives[client];
                let mut content = *life.contents.last().unwrap();
                content[service] = if matches!(action, Action::Register(..)) { life.contents.len() as u8 } else { 0 };
                life.contents.push(content);
                life.changes_left -= 1;
                let home = self.home(client);
                let node = state.nodes[home].as_mut().unwrap();
                node.change(client as Client, content);
                self.announce(node, home, client as Client, Sync::Change);
            }
            Action::Disconnect(client) => {
                state.lives[client].connection = Connection::Ended;
                state.lives[client].left_cleanly = true;
                let home = self.home(client);
                let node = state.nodes[home].as_mut().unwrap();
                node.delete(client as Client);
                self.announce(node, home, client as Client, Sync::Delete);
            }
            Action::Task(name, at) => {
                let node = state.nodes[name].as_mut().unwrap();
                let task = node.tasks.remove(at);
                let request = match (task.action, node.held(task.client)) {
                    (Sync::Change, Some(held)) => Request::Change { client: task.client, revision: held.revision, content: held.content },
                    _ => Request::Delete { client: task.client },
                };
                self.send(&mut state, name, task.target, request);
            }
            Action::VerifyRound(name) => {
                let clients = state.nodes[name].as_ref().unwrap().clients.clone();
                for held in clients.iter().filter(|held| held.native) {
                    for target in self.others(name) {
                        self.send(&mut state, name, target, Request::Verify { client: held.client, revision: held.revision });
                    }
                }
            }
            Action::Load(name) => self.load(&mut state, name),
            Action::Crash(name) => {
                state.crashes -= 1;
                state.nodes[name] = None;
                for other in self.others(name) {
                    let (out, into) = (self.link(name, other), self.link(other, name));
                    state.links[out].calls.clear();
                    state.links[into].down = true;
                    for call in &mut state.links[into].calls {
                        call.phase = Phase::Refused;
                    }
                }
                for client in 0..self.clients {
                    let life = &mut state.lives[client];
                    life.left_cleanly = false;
                    if self.home(client) == name && life.connection == Connection::Open {
                        life.connection = Connection::Ended;
                    }
                }
            }
            Action::Restart(name) => {
                state.nodes[name] = Some(NodeState::new(false));
                for other in self.others(name) {
                    state.links[self.link(other, name)].down = false;
                }
                self.load(&mut state, name);
            }
            Action::Deliver(source, target) => {
                let calls = &mut state.links[self.link(source, target)].calls;
                let first = calls.iter().position(|call| call.phase == Phase::Sent).unwrap();
                let call = calls.remove(first);
                let answer = self.receive(&mut state, target, &call.request);
                self.ended(&mut state, source, target, &call.request, answer);
            }
            Action::Lose(source, target) => {
                state.drops -= 1;
                let calls = &mut state.links[self.link(source, target)].calls;
                calls.iter_mut().find(|call| call.phase == Phase::Sent).unwrap().phase = Phase::Lost;
            }
            Action::Swallow(source, target) => {
                state.swallows -= 1;
                let calls = &mut state.links[self.link(source, target)].calls;
                let first = calls.iter().position(|call| call.phase == Phase::Sent).unwrap();
                let call = calls.remove(first);
                if let Request::Delete { client } = call.request {
                    state.lives[client as usize].left_cleanly = false;
                }
                self.ended(&mut state, source, target, &call.request, Answer::Success(vec![]));
            }
            Action::End(source, target, position) => {
                let call = state.links[self.link(source, target)].calls.remove(position);
                let answer = if call.phase == Phase::Lost { Answer::Timeout } else { Answer::Unreachable };
                self.ended(&mut state, source, target, &call.request, answer);
            }
        }
        self.fits(&state).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("INV-OWNER", |cluster: &Cluster, state: &State| {
                state.lives.iter().enumerate().all(|(client, life)| {
                    state.nodes.iter().enumerate().all(|(name, node)| {
                        let native = node.as_ref().is_some_and(|node| node.is_native(client as Client));
                        native == (life.connection == Connection::Open && cluster.home(client) == name)
                    })
                })
            }),
            Property::always("INV-REV", |_: &Cluster, state: &State| {
                state.nodes.iter().flatten().flat_map(|node| &node.clients).all(|held| {
                    let contents = &state.lives[held.client as usize].contents;
                    (held.revision == 0 && !held.native) || contents.get(held.revision as usize) == Some(&held.content)
                })
            }),
        ]
    }
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>().expect("a number"));
    let mut next = || numbers.next().expect("usage: NODES CLIENTS SERVICES CHANGES CRASHES DROPS SWALLOWS IN_FLIGHT DEPTH THREADS");
    let cluster = Cluster {
        nodes: next(),
        clients: next(),
        services: next(),
        changes: next() as u8,
        crashes: next() as u8,
        drops: next() as u8,
        swallows: next() as u8,
        in_flight: next(),
    };
    let (depth, threads) = (next(), next()); // depth: levels, the initial state's among them; 0 for all
    let began = Instant::now();
    let mut builder = cluster.checker().threads(threads);
    if depth > 0 {
        builder = builder.target_max_depth(depth);
    }
    let checker = builder.spawn_bfs().join();
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{{\"distinct_states\": {}, \"transitions\": {}, \"seconds\": {:.3}, \"holds\": {}}}",
        checker.unique_state_count(),
        checker.state_count() - 1, // the initial state was not generated by a transition
        seconds,
        checker.discoveries().is_empty(),
    );
}
