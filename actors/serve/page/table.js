// The rooms as a table. Only the rows that are in sight are drawn, so that ten thousand cost no more than thirty.

import { html, useEffect, useMemo, useRef, useState } from "./vendor/preact-htm.js";
import { now, select, store, useStore } from "./store.js";
import { PHASES, count, lasting, plural, short } from "./text.js";

const ROW = 30;
const SPARE = 6;

// `past`: what a column is of rooms that ended.
const COLUMNS = [
  { key: "room", name: "Room", by: (room) => room.seq },
  { key: "request", name: "Request", by: (room) => room.request },
  { key: "phase", name: "Phase", past: "Outcome", by: (room) => (room.phase === "ended" ? room.outcome : PHASES.indexOf(room.phase)) },
  { key: "since", name: "In phase", past: "Ended", by: (room) => room.since },
  { key: "born", name: "Age", past: "Lasted", by: (room) => (room.age == null ? room.born : -room.age) },
  { key: "attempt", name: "Try", by: (room) => -room.attempt },
  { key: "tokens", name: "Tokens", by: (room) => -room.tokens },
  { key: "waits", name: "Waits for", past: "Reason", by: (room) => room.waits },
  { key: "held", name: "Blocks held by", past: "Workers", by: (room) => places(room) },
  { key: "deadline", name: "Ends in", by: (room) => room.deadline || Infinity },
];

// Who may hold blocks for it, and who was told of it before.
function places({ phase, held, before }) {
  if (phase === "ended") return before.join(", ");
  return before.length ? `${held.join(", ")} (before: ${before.join(", ")})` : held.join(", ");
}

const has = (room, words) => {
  const all = `${room.room} #${room.seq} ${room.request} ${room.trace ?? ""} ${room.phase} ${room.waits} ${room.held.join(" ")} ${room.before.join(" ")} ${room.outcome ?? ""} ${room.reason ?? ""}`.toLowerCase();
  return words.every((word) => all.includes(word));
};

// What the admin listener says of a room that has ended, as the rest of the table takes it. Nothing of it was left `ended_ms_ago`.
function ended(row) {
  const since = now() - row.ended_ms_ago;
  const seq = Number(row.room.slice(row.room.indexOf("-") + 1));
  return { seq, room: row.room, request: row.request_id, trace: row.trace_id, phase: "ended", since, born: since - row.age_ms, age: row.age_ms, at: row.ended_at,
    attempt: row.generation, tokens: row.delivered_tokens, waits: row.reason ?? "", held: [], before: row.workers, deadline: 0, outcome: row.outcome, reason: row.reason };
}

function useEnded(shown) {
  const [rows, setRows] = useState([]);
  useEffect(() => {
    if (!shown) return;
    let over = false;
    const ask = async () => {
      try {
        const answer = await fetch("/rooms/ended");
        if (!over && answer.ok) setRows((await answer.json()).map(ended));
      } catch {
        // The header says that the gateway does not answer.
      }
    };
    ask();
    const timer = setInterval(ask, 2000);
    return () => {
      over = true;
      clearInterval(timer);
    };
  }, [shown]);
  return rows;
}

function Row({ room, index, chosen, time }) {
  const over = room.phase === "ended";
  const progress = room.positions ? ` (${count(room.computed)} of ${count(room.positions)})` : "";
  const left = room.deadline ? room.deadline - time : null;
  return html`<div role="row" aria-rowindex=${index + 2} aria-selected=${chosen} class="row ${chosen ? "chosen" : ""}" style=${{ top: `${index * ROW}px` }} onClick=${() => select(room.room)}>
    <span role="gridcell" class="mono" title=${room.room}>${short(room.room)}</span>
    <span role="gridcell" class="mono" title=${room.request}>${room.request}</span>
    <span role="gridcell">${over ? html`<em class="outcome ${room.outcome}">${room.outcome}</em>` : html`<em class="phase ${room.phase}">${room.phase}</em>`}</span>
    <span role="gridcell" class="number" title=${room.at ?? ""}>${lasting(time - room.since)}${over ? " ago" : ""}</span>
    <span role="gridcell" class="number">${lasting(over ? room.age : time - room.born)}</span>
    <span role="gridcell" class="number ${room.attempt > 1 ? "warn" : ""}">${room.attempt}</span>
    <span role="gridcell" class="number">${count(room.tokens)}</span>
    <span role="gridcell" title=${room.waits}>${room.waits + progress}</span>
    <span role="gridcell" title=${places(room)}>${places(room)}</span>
    <span role="gridcell" class="number ${left != null && left < 2000 ? "bad" : ""}">${left == null ? "–" : lasting(left)}</span>
  </div>`;
}

export function Table({ searchRef }) {
  const { rooms, version, selected } = useStore();
  const [text, setText] = useState("");
  const [phase, setPhase] = useState(null);
  const [past, setPast] = useState(false);
  const [order, setOrder] = useState({ key: "since", down: false });
  const [top, setTop] = useState(0);
  const [tall, setTall] = useState(420);
  const box = useRef(null);
  const over = useEnded(past);

  const rows = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    let found = past ? over : [...rooms.values()];
    if (phase && !past) found = found.filter((room) => room.phase === phase);
    if (words.length) found = found.filter((room) => has(room, words));
    else if (!phase || past) found = found.slice();
    // Those that ended are shown as they ended, the latest first.
    if (past && order.key === "since") return order.down ? found.slice().reverse() : found;
    const { by } = COLUMNS.find((column) => column.key === order.key);
    const sign = order.down ? -1 : 1;
    return found.map((room) => [by(room), room]).sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0)).map(([, room]) => room);
  }, [version, over, past, phase, text, order]);

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setTall(entry.contentRect.height));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);

  const chosen = rows.findIndex((room) => room.room === selected);
  const go = (to) => {
    const index = Math.max(0, Math.min(rows.length - 1, to));
    if (!rows[index]) return;
    select(rows[index].room);
    const { scrollTop, clientHeight } = box.current;
    const y = index * ROW;
    if (y < scrollTop) box.current.scrollTop = y;
    else if (y + ROW > scrollTop + clientHeight) box.current.scrollTop = y + ROW - clientHeight;
  };
  const keys = (event) => {
    const page = Math.floor(box.current.clientHeight / ROW);
    const to = { ArrowDown: chosen + 1, ArrowUp: chosen - 1, PageDown: chosen + page, PageUp: chosen - page, Home: 0, End: rows.length - 1 }[event.key];
    if (to == null) return;
    event.preventDefault();
    go(to);
  };
  // A request, a trace or a room that is not among these may have ended: the gateway is asked.
  const enter = (event) => {
    if (event.key === "Enter" && text.trim()) select(rows.length ? rows[0].room : text.trim());
    if (event.key === "ArrowDown") {
      event.preventDefault();
      box.current.focus();
      go(Math.max(0, chosen));
    }
    if (event.key === "Escape") {
      event.stopPropagation();
      setText("");
      event.target.blur();
    }
  };

  const first = Math.max(0, Math.floor(top / ROW) - SPARE);
  const shown = rows.slice(first, first + Math.ceil(tall / ROW) + 2 * SPARE);
  const time = now();
  const sort = (key) => setOrder(order.key === key ? { key, down: !order.down } : { key, down: false });
  return html`<section class="panel table" aria-label="Rooms">
    <div class="tools">
      <div class="tabs" role="tablist">
        <button role="tab" aria-selected=${!past} onClick=${() => setPast(false)}>Open</button>
        <button role="tab" aria-selected=${past} onClick=${() => setPast(true)} id="ended">Ended lately</button>
      </div>
      <input ref=${searchRef} id="search" type="search" placeholder="Room, request id, trace id, worker …  ( / )" aria-label="Search rooms" value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${enter} />
      ${!past &&
      html`<div class="chips" role="group" aria-label="Phase">
        ${PHASES.map((name) => html`<button class="chip ${name}" aria-pressed=${phase === name} onClick=${() => setPhase(phase === name ? null : name)}>${name}</button>`)}
      </div>`}
      <span class="grow"></span>
      <output id="shown">${plural(rows.length, "room")}</output>
    </div>
    <div role="grid" aria-label="Rooms" aria-rowcount=${rows.length + 1} class="grid">
      <div role="row" class="row heading">
        ${COLUMNS.map(
          ({ key, name, past: then }) => html`<span role="columnheader" aria-sort=${order.key === key ? (order.down ? "descending" : "ascending") : "none"}>
            <button onClick=${() => sort(key)}>${(past && then) || name}${order.key === key ? (order.down ? " ▾" : " ▴") : ""}</button>
          </span>`,
        )}
      </div>
      <div class="body" ref=${box} tabindex="0" id="rows" onKeyDown=${keys} onScroll=${(event) => setTop(event.target.scrollTop)}>
        <div class="tall" style=${{ height: `${rows.length * ROW}px` }}>
          ${shown.map((room, place) => html`<${Row} key=${room.room} room=${room} index=${first + place} chosen=${room.room === selected} time=${time} />`)}
        </div>
        ${!rows.length &&
        html`<p class="none">
          ${text.trim() ? html`No such room ${past ? "among those that ended" : "is open"}. Enter asks the gateway for ${text.trim()}, ended or not.` : past ? "No room has ended yet." : "No room is open."}
        </p>`}
      </div>
    </div>
  </section>`;
}
