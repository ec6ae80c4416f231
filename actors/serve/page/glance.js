// What is seen within five seconds: whether it serves, what is wrong, and the figures of the last minute.

import { html } from "./vendor/preact-htm.js";
import { select, useStore } from "./store.js";
import { bytes, count, lasting, plural, rate, short } from "./text.js";

// A room that is longer than this in a phase is worth a look. Queued and decoding rooms may be there for long in good health, which their
// deadline tells; drained ones are quick.
const LONG_MS = { queued: 5_000, reserving: 1_000, prefilling: 8_000, pulling: 2_000, decoding: null, draining: 1_000 };
const SILENT_MS = 1_000;

// What is wrong, the worst first.
export function troubles(store) {
  const glance = store.glance;
  if (!glance) return [];
  const found = [];
  if (glance.not_ready) found.push({ level: "bad", text: `New requests are refused: ${glance.not_ready}` });
  for (const worker of glance.workers) {
    if (worker.heard_ms_ago > SILENT_MS) {
      found.push({ level: "bad", text: `${worker.name} has said nothing for ${lasting(worker.heard_ms_ago)}` });
    }
    if (worker.blocks_quarantined > 0) {
      found.push({ level: "warn", text: `${worker.name} has ${plural(worker.blocks_quarantined, "block")} in quarantine` });
    }
    if (worker.draining) found.push({ level: "warn", text: `${worker.name} takes nothing new` });
  }
  for (const phase of glance.phases) {
    const limit = LONG_MS[phase.phase];
    if (limit && phase.oldest_ms > limit) {
      found.push({
        level: phase.oldest_ms > 3 * limit ? "bad" : "warn",
        text: `${short(phase.oldest)} is ${phase.phase} for ${lasting(phase.oldest_ms)}`,
        room: phase.oldest,
      });
    }
  }
  const minute = glance.last_minute;
  const wrong = minute.failed + minute.expired;
  if (wrong) {
    found.push({ level: wrong > minute.completed ? "bad" : "warn", text: `${plural(wrong, "request")} failed or expired in the last minute` });
  }
  return found.sort((a, b) => (a.level === "bad" ? 0 : 1) - (b.level === "bad" ? 0 : 1));
}

export function Header({ onTheme, theme, onHelp }) {
  const store = useStore();
  const glance = store.glance;
  const lost = store.state === "lost";
  const found = troubles(store);
  const verdict = lost
    ? ["bad", `No word from the gateway for ${lasting(performance.now() - store.lostAt)}: what you see is old`]
    : !glance
      ? ["", "Looking …"]
      : glance.not_ready
        ? ["bad", "Not serving"]
        : found.length
          ? [found[0].level, found[0].level === "bad" ? "Serving, with trouble" : "Serving, look below"]
          : ["good", "Serving, all is well"];
  return html`<header>
    <img src="/page/icon.svg" alt="" width="28" height="28" />
    <h1>Innkeeper</h1>
    <span class="who">${glance ? `${glance.gateway} · ${glance.model} · up ${lasting(glance.uptime_s * 1000)}` : ""}</span>
    <strong class="verdict ${verdict[0]}" role="status" id="verdict">${verdict[1]}</strong>
    <span class="grow"></span>
    <button class="quiet" onClick=${onHelp} title="Keys (?)">?</button>
    <button class="quiet" onClick=${onTheme} title="Light or dark (t)" id="theme">${theme === "dark" ? "☾" : theme === "light" ? "☀" : "◐"}</button>
  </header>`;
}

export function Troubles() {
  const found = troubles(useStore());
  if (!found.length) return null;
  const shown = found.slice(0, 6);
  return html`<ul class="troubles" aria-label="What is out of the ordinary">
    ${shown.map(
      ({ level, text, room }) => html`<li class=${level}>
        ${room ? html`<button onClick=${() => select(room)}>${text}</button>` : html`<span>${text}</span>`}
      </li>`,
    )}
    ${found.length > shown.length && html`<li><span>and ${found.length - shown.length} more</span></li>`}
  </ul>`;
}

function Tile({ name, value, unit, under, level = "" }) {
  return html`<div class="tile ${level}">
    <span class="name">${name}</span>
    <span class="value">${value}${unit && html`<small> ${unit}</small>`}</span>
    <span class="under">${under}</span>
  </div>`;
}

const ms = (value) => (value == null ? "–" : value >= 10_000 ? rate(value / 1000) : rate(value));
const unit = (value) => (value == null ? "" : value >= 10_000 ? "s" : "ms");

export function Tiles() {
  const { glance } = useStore();
  if (!glance) return null;
  const m = glance.last_minute;
  const wrong = m.failed + m.expired;
  const first = m.first_token;
  const between = m.between_tokens;
  return html`<section class="tiles" aria-label="The last minute">
    <${Tile} name="Rooms open" value=${count(glance.rooms_open)} under=${`${count(glance.rooms_waiting)} wait for a worker`} />
    <${Tile} name="Requests" value=${rate(m.opened_per_s)} unit="/s" under=${`${count(m.completed)} completed, ${count(m.aborted)} aborted`} />
    <${Tile} name="Tokens" value=${rate(m.tokens_per_s)} unit="/s" under=${`KV ${bytes(m.kv_bytes_per_s)}/s`} />
    <${Tile} name="First token" value=${ms(first.p50_ms)} unit=${unit(first.p50_ms)} under=${`99 %: ${ms(first.p99_ms)} ${unit(first.p99_ms)}`} />
    <${Tile} name="Between tokens" value=${ms(between.p50_ms)} unit=${unit(between.p50_ms)} under=${`99 %: ${ms(between.p99_ms)} ${unit(between.p99_ms)}`} />
    <${Tile} name="Failed, expired" value=${count(wrong)} under=${`${count(m.failed)} failed, ${count(m.expired)} expired`} level=${wrong ? "bad" : ""} />
  </section>`;
}
