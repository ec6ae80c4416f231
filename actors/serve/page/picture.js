// The cluster as a picture: the gateway, its links, the workers with their pools filling, and KV on its way from one to another.

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { useStore } from "./store.js";
import { bytes, count, lasting } from "./text.js";

const CARD = { width: 216, height: 98, gap: 14 };
const GATE = { width: 132, height: 76 };

function Pool({ worker }) {
  const total = Math.max(1, worker.blocks_total);
  const part = (blocks) => ({ width: `${(100 * blocks) / total}%` });
  const told = `${worker.blocks_leased} leased, ${worker.blocks_cached} cached, ${worker.blocks_quarantined} in quarantine, ${worker.blocks_free} free of ${worker.blocks_total} blocks`;
  return html`<div class="pool" title=${told} role="img" aria-label=${told}>
    <i class="leased" style=${part(worker.blocks_leased)}></i><i class="quarantined" style=${part(worker.blocks_quarantined)}></i
    ><i class="cached" style=${part(worker.blocks_cached)}></i>
  </div>`;
}

// A worker's name; behind it, what the worker says itself, where that can be asked.
export function Name({ worker }) {
  if (!worker.admin) return worker.name;
  return html`<a href=${`http://${worker.admin}/stays`} target="_blank" rel="noreferrer" title=${`What it says itself: http://${worker.admin}`}>${worker.name}</a>`;
}

function Worker({ worker, place, ask }) {
  const silent = worker.heard_ms_ago > 1000;
  const level = silent ? "bad" : worker.draining ? "warn" : "";
  const verb = worker.draining ? "undrain" : "drain";
  return html`<article class="worker ${worker.role} ${level}" style=${{ left: `${place.x}px`, top: `${place.y}px`, width: `${CARD.width}px`, height: `${CARD.height}px` }}>
    <h3><b><${Name} worker=${worker} /></b><span class="role">${worker.role}</span></h3>
    <${Pool} worker=${worker} />
    <p><span>${count(worker.blocks_leased)}/${count(worker.blocks_total)} blocks</span><span>${worker.slots_used}/${worker.slots_total} slots</span></p>
    <p>
      <span>${silent ? `silent for ${lasting(worker.heard_ms_ago)}` : worker.draining ? `no new rooms, ${worker.rooms_held} left` : worker.prefill_backlog_tokens ? `backlog ${count(worker.prefill_backlog_tokens)}` : `rooms ${worker.rooms_held}`}</span>
      <button class="quiet small" data-worker=${worker.name} onClick=${() => ask(worker, verb)}>${verb === "drain" ? "Drain …" : "Undrain …"}</button>
    </p>
  </article>`;
}

// Prefill in the middle, decode to the right, mixed where there is place.
function places(workers, width) {
  const columns = [[], []];
  for (const worker of workers) {
    const mixed = worker.role === "mixed";
    const to = mixed ? (columns[0].length <= columns[1].length ? 0 : 1) : worker.role === "prefill" ? 0 : 1;
    columns[to].push(worker);
  }
  const room = Math.max(0, width - GATE.width - 2 * CARD.width);
  const xs = [GATE.width + room / 2, GATE.width + room + CARD.width];
  const tall = (n) => n * CARD.height + Math.max(0, n - 1) * CARD.gap;
  const height = Math.max(GATE.height + 40, tall(columns[0].length), tall(columns[1].length));
  const found = new Map();
  columns.forEach((column, index) => {
    const top = (height - tall(column.length)) / 2;
    column.forEach((worker, row) => found.set(worker.name, { x: xs[index], y: top + row * (CARD.height + CARD.gap), column: index }));
  });
  return { found, height };
}

function curve(x1, y1, x2, y2) {
  const bend = Math.max(24, Math.abs(x2 - x1) / 2);
  return `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

export function Picture({ ask }) {
  const { glance } = useStore();
  const box = useRef(null);
  const [width, setWidth] = useState(720);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(600, entry.contentRect.width)));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const byName = (a, b) => a.name.localeCompare(b.name, "en", { numeric: true });
  const workers = (glance?.workers ?? []).slice().sort(byName);
  const { found, height } = places(workers, width);
  const gateY = height / 2;
  const links = new Map((glance?.links ?? []).map((link) => [link.worker, link]));
  const mids = (name) => {
    const place = found.get(name);
    return place && { ...place, middle: place.y + CARD.height / 2 };
  };
  return html`<section class="panel picture" aria-label="The cluster">
    <h2>Cluster <small class="legend"><i class="leased"></i>leased<i class="cached"></i>cached<i class="quarantined"></i>quarantine</small></h2>
    <div class="scroll" ref=${box}>
      <div class="canvas" style=${{ height: `${height}px`, width: `${width}px` }}>
        <svg width=${width} height=${height} aria-hidden="true">
          ${workers.map((worker) => {
            const place = mids(worker.name);
            const link = links.get(worker.name);
            const level = worker.heard_ms_ago > 1000 ? "bad" : worker.draining ? "warn" : "";
            return html`<path class="link ${level} ${place.column ? "far" : ""}" d=${curve(GATE.width, gateY, place.x, place.middle)}><title>${link ? `${worker.name} at ${link.remote}: ${lasting(link.rtt_us / 1000)} there and back, ${bytes(link.bytes_in + link.bytes_out)}` : worker.name}</title></path>`;
          })}
          ${(glance?.moves ?? []).map((move) => {
            const [from, to] = [mids(move.from), mids(move.to)];
            if (!from || !to || move.from === move.to) return null;
            const live = move.last_ms_ago < 2000;
            const start = from.x + CARD.width;
            return html`<path class="move ${live ? "live" : ""}" d=${curve(start, from.middle, to.x, to.middle)}><title>KV ${move.from} → ${move.to} over ${move.transport}: ${count(move.pulls)} pulls, ${bytes(move.bytes)}</title></path>`;
          })}
        </svg>
        <article class="gate" style=${{ top: `${gateY - GATE.height / 2}px`, width: `${GATE.width}px`, height: `${GATE.height}px` }}>
          <h3><b>${glance?.gateway ?? "gateway"}</b></h3>
          <p>${count(glance?.rooms_open ?? 0)} rooms</p>
          <p>${count(glance?.rooms_waiting ?? 0)} waiting</p>
        </article>
        ${workers.map((worker) => html`<${Worker} key=${worker.name} worker=${worker} place=${found.get(worker.name)} ask=${ask} />`)}
        ${glance && !workers.length && html`<p class="none">No worker is linked. Start one: <code>innkeeper worker --role mixed --gateway ADDR</code></p>`}
      </div>
    </div>
  </section>`;
}
