// A gateway that is not there: the page's own files, and as many rooms as a test wants, which move. What a real one says is tested with a
// real one: see live.mjs.

import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { extname } from "node:path";

const PAGE = new URL("../../actors/serve/page/", import.meta.url);
const KINDS = { ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html" };
const PHASES = ["queued", "reserving", "prefilling", "pulling", "decoding", "draining"];
const NODE = "66179c5f147a751e";
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'";

const began = performance.now();
const now = () => Math.round(performance.now() - began) + 600_000;

// The same every time.
let seed = 7;
const random = () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 32;
};
const pick = (list) => list[Math.floor(random() * list.length)];

const WORKERS = ["prefill-0", "prefill-1", "decode-0", "decode-1", "decode-2"].map((name) => ({
  name, node: name, admin: "127.0.0.1:40123", role: name.split("-")[0], blocks_total: 4096, blocks_free: 0, blocks_cached: 500, blocks_leased: 1800, blocks_quarantined: 0,
  slots_total: 32, slots_used: 12, prefill_backlog_tokens: name.startsWith("prefill") ? 2048 : 0, draining: false,
  linked_ms: 600_000, heard_ms_ago: 120, kv_transport: "ucx-tcp", kv_bytes_in: 0, kv_bytes_out: 0, promised_blocks: 0, rooms_held: 40,
}));

function room(seq, phase = pick(PHASES)) {
  const since = now() - Math.floor(random() * 6000);
  const worker = phase === "prefilling" ? pick(["prefill-0", "prefill-1"]) : pick(["decode-0", "decode-1", "decode-2"]);
  const waits = { queued: "a worker with room", reserving: `blocks and a slot from ${worker}`, prefilling: `${worker} to compute the prompt`,
    pulling: `${worker} to pull the KV from prefill-0`, decoding: `the next token from ${worker}`, draining: `proof from ${worker} that its lease is returned (1 out)` }[phase];
  return { seq, room: `${NODE}-${seq}`, request: `req_${seq.toString(16).padStart(8, "0")}`, trace: seq.toString(16).padStart(32, "0"), phase, attempt: random() < 0.02 ? 2 : 1,
    born: since - Math.floor(random() * 3000), since, waits, held: phase === "queued" ? [] : [worker], before: [], outcome: null, reason: null };
}

function series(seconds, from) {
  const column = (make) => Array.from({ length: seconds }, (_, i) => make(from + i));
  const wave = (i, mean) => Math.max(0, Math.round(mean * (1 + 0.25 * Math.sin(i / 19) + 0.2 * random())));
  return { from_s: from, opened: column((i) => wave(i, 40)), completed: column((i) => wave(i, 39)), wrong: column((i) => (i % 97 ? 0 : 2)), tokens: column((i) => wave(i, 5200)),
    open: column((i) => wave(i, 300)), first_p50_ms: column((i) => wave(i, 180)), first_p99_ms: column((i) => wave(i, 620)), between_p50_ms: column((i) => wave(i, 24)), between_p99_ms: column((i) => wave(i, 70)) };
}

// Serves `count` rooms; `moving` of them go on at each tick.
export async function start({ count = 10_000, moving = 500, tick = 500 } = {}) {
  let next = 1;
  const rooms = new Map();
  for (; next <= count; next++) rooms.set(next, room(next));
  const asked = [];
  const watchers = new Set();
  const send = (to, event, data) => to.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  const numbers = (row) => [row.seq, row.tokens ?? 0, row.phase === "prefilling" ? 128 : 0, row.phase === "prefilling" ? 512 : 0, now() + 9000];
  const overview = (seconds) => {
    const second = Math.floor(now() / 1000);
    const phases = PHASES.map((phase) => {
      const own = [...rooms.values()].filter((row) => row.phase === phase);
      const oldest = own.reduce((a, b) => (a && a.since <= b.since ? a : b), null);
      return { phase, rooms: own.length, oldest_ms: oldest ? now() - oldest.since : 0, oldest: oldest?.room ?? null };
    });
    return { gateway: "gateway-0", node: NODE, model: "SmolLM2-135M-Instruct.Q4_1", now_ms: now(), uptime_s: second, not_ready: null, rooms_open: rooms.size,
      rooms_waiting: phases[0].rooms, phases, workers: WORKERS, series: series(seconds, Math.max(0, second - seconds)), oldest: [],
      last_minute: { seconds: 60, opened: 2400, completed: 2340, aborted: 21, failed: 0, expired: 0, tokens_per_s: 5214, opened_per_s: 40, kv_bytes_per_s: 3.1e7,
        first_token: { p50_ms: 184, p90_ms: 410, p99_ms: 630 }, between_tokens: { p50_ms: 24, p90_ms: 41, p99_ms: 71 } },
      links: WORKERS.map((worker) => ({ worker: worker.name, remote: "127.0.0.1:40000", up_ms: 600_000, heard_ms_ago: 120, rtt_us: 310, frames_in: 9, frames_out: 9, bytes_in: 1e6, bytes_out: 1e6, dropped_in: 0, queued_frames: 0, queued_bytes: 0 })),
      moves: ["prefill-0", "prefill-1"].flatMap((from) => ["decode-0", "decode-1", "decode-2"].map((to) => ({ from, to, transport: "ucx-tcp", pulls: 400, bytes: 2e9, descriptors: 4000, last_ms_ago: 200 }))) };
  };
  const step = () => {
    const rows = [];
    const gone = [];
    for (let i = 0; i < moving; i++) {
      const row = pick([...rooms.values()].slice(0, 200)) ?? null;
      if (!row || !rooms.has(row.seq)) continue;
      const place = PHASES.indexOf(row.phase);
      rooms.delete(row.seq);
      if (place === PHASES.length - 1) {
        gone.push(row.seq);
        const fresh = room(next++, "queued");
        fresh.since = fresh.born = now();
        rooms.set(fresh.seq, fresh);
        rows.push(fresh);
      } else {
        const moved = { ...room(row.seq, PHASES[place + 1]), born: row.born, since: now() };
        rooms.set(row.seq, moved);
        rows.push(moved);
      }
    }
    const last = rows.filter((row) => rooms.get(row.seq) === row);
    const tokens = [...rooms.values()].filter((row) => row.phase === "decoding");
    for (const row of tokens) row.tokens = (row.tokens ?? 0) + 8;
    for (const watcher of watchers) {
      send(watcher, "overview", overview(1));
      send(watcher, "rooms", { all: false, rows: last, gone: gone.filter((seq) => !rooms.has(seq)), moving: tokens.map(numbers) });
    }
  };
  const account = (row) => ({ room: row.room, request_id: row.request, trace_id: row.trace, jaeger: `http://127.0.0.1:16686/trace/${row.trace}`, phase: row.phase, in_phase_ms: now() - row.since, age_ms: now() - row.born,
    summary: `${row.phase} for 2.1 s: it waits for ${row.waits}`, waits_for: row.waits, ends: { in_ms: 7900, deadline: "the longest time between two tokens", then: "the attempt fails, and the next one begins elsewhere, as long as attempts are left" },
    held_by: row.held.map((worker) => ({ worker, attempt: 1, blocks: 12, phase: "decoding", told_to_close: null, heard_ms_ago: 120 })), odd: [], outcome: null, reason: null, ended_in: null, attempt: row.attempt, attempts: row.attempt,
    answer: 1, answers: 1, model: "m", prompt_tokens: 512, cached_tokens: 128, max_tokens: 256, delivered_tokens: row.tokens ?? 0, priority: 128, took: { prepare_ms: 2, queued_ms: 11, first_token_ms: 180, outcome_ms: null, longest_gap_ms: 40 },
    arrived_unix_ms: Date.now() - 4000, left_out: 0, history: [{ at_us: 2000, attempt: 1, tone: "step", what: "opened" }],
    stretches: [["prepare", 0, 2000], ["queued", 2000, 13000], ["reserving", 13000, 20000], ["prefilling", 20000, 160000], ["pulling", 160000, 178000], ["decoding", 178000, 2278000]].map(([phase, from_us, to_us], i, all) => ({ phase, attempt: phase === "prepare" ? 0 : 1, from_us, to_us, open: i === all.length - 1 })) });
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://stub").pathname);
    const json = (value) => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
    asked.push(`${request.method} ${path}`);
    if (path === "/events") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      send(response, "overview", overview(300));
      send(response, "rooms", { all: true, rows: [...rooms.values()], gone: [], moving: [...rooms.values()].map(numbers) });
      watchers.add(response);
      response.on("close", () => watchers.delete(response));
    } else if (path === "/rooms/ended") json([]);
    else if (path.endsWith("/explain")) {
      const row = [...rooms.values()].find((row) => [row.room, row.request, row.trace].includes(path.split("/")[2]));
      if (row) json([account(row)]);
      else response.writeHead(404).end(`no room, request id or trace id ${path.split("/")[2]} is known to gateway-0\n`);
    } else if (request.method === "POST") response.writeHead(202).end("it is done\n");
    else {
      const name = path === "/" ? "index.html" : path.replace("/page/", "");
      try {
        const content = readFileSync(new URL(name, PAGE));
        response.writeHead(200, { "content-type": KINDS[extname(name)] ?? "text/plain", "content-security-policy": POLICY }).end(content);
      } catch {
        response.writeHead(404).end("there is nothing\n");
      }
    }
  });
  await new Promise((go) => server.listen(0, "127.0.0.1", go));
  const timer = setInterval(step, tick);
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    rooms,
    asked,
    watchers,
    end: () => {
      clearInterval(timer);
      server.closeAllConnections();
      return new Promise((go) => server.close(go));
    },
  };
}
