// One room's account: where it is, what it waits for, what ends it, who holds what, and its whole history.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { Name } from "./picture.js";
import { select, store } from "./store.js";
import { count, lasting, plural } from "./text.js";

// What the gateway says of it, asked again and again while it goes on.
function useAccounts(what) {
  const [state, setState] = useState({ what: null, accounts: [], why: null });
  useEffect(() => {
    let over = false;
    let timer = 0;
    const ask = async () => {
      let next = 1000;
      try {
        const answer = await fetch(`/rooms/${encodeURIComponent(what)}/explain`);
        const told = answer.ok ? { accounts: await answer.json(), why: null } : { accounts: [], why: (await answer.text()).trim() };
        if (over) return;
        setState({ what, ...told });
        if (!told.accounts.some((account) => account.phase !== "ended")) next = 5000;
      } catch {
        if (over) return;
        setState((before) => ({ ...before, why: "the gateway does not answer" }));
      }
      timer = setTimeout(ask, next);
    };
    ask();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [what]);
  return state.what === what ? state : { accounts: [], why: null };
}

const at = (us) => (us < 10_000 ? `${(us / 1000).toFixed(1)} ms` : lasting(us / 1000));

function Timeline({ account }) {
  const end = Math.max(1, ...account.stretches.map((part) => part.to_us));
  const attempts = [...new Set(account.stretches.map((part) => part.attempt))].filter((attempt) => attempt > 0);
  const rows = attempts.length ? attempts : [1];
  return html`<div class="timeline" role="img" aria-label=${account.stretches.map((part) => `${part.phase} ${at(part.to_us - part.from_us)}`).join(", ")}>
    ${rows.map(
      (attempt, place) => html`<div class="track">
        ${account.stretches
          .filter((part) => part.attempt === attempt || (place === 0 && part.attempt === 0))
          .map((part) => {
            const style = { left: `${(100 * part.from_us) / end}%`, width: `max(2px, ${(100 * (part.to_us - part.from_us)) / end}%)` };
            return html`<i class="${part.phase} ${part.open ? "open" : ""}" style=${style} title=${`${part.phase}, attempt ${attempt}: ${at(part.to_us - part.from_us)}`}></i>`;
          })}
        ${rows.length > 1 && html`<span>attempt ${attempt}</span>`}
      </div>`,
    )}
    <div class="scale"><span>0</span><span>${at(end / 2)}</span><span>${at(end)}</span></div>
    <div class="legend">${[...new Set(account.stretches.map((part) => part.phase))].map((phase) => html`<span><i class=${phase}></i>${phase}</span>`)}</div>
  </div>`;
}

const Fact = ({ name, children }) => html`<div><dt>${name}</dt><dd>${children}</dd></div>`;

function Copy({ text }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1200);
    } catch {
      // Then it can still be selected by hand.
    }
  };
  return html`<button class="copy mono" onClick=${copy} title="Copy">${text}${done ? " ✓" : ""}</button>`;
}

function Held({ held }) {
  const linked = new Map((store.glance?.workers ?? []).map((worker) => [worker.name, worker]));
  if (!held.length) return html`<p class="soft">Nobody holds blocks for it.</p>`;
  return html`<table>
    <thead><tr><th>Worker</th><th>Try</th><th>Blocks</th><th>There</th><th>Last heard</th></tr></thead>
    <tbody>
      ${held.map(
        (row) => html`<tr class=${row.heard_ms_ago == null || row.heard_ms_ago > 1000 ? "bad" : ""}>
          <td><${Name} worker=${linked.get(row.worker) ?? { name: row.worker }} /></td><td>${row.attempt}</td><td>${row.blocks ?? "–"}</td>
          <td>${row.phase ?? "–"}${row.told_to_close != null ? `, told to close ${row.told_to_close}×` : ""}</td>
          <td>${row.heard_ms_ago == null ? "not linked" : `${lasting(row.heard_ms_ago)} ago`}</td>
        </tr>`,
      )}
    </tbody>
  </table>`;
}

function Account({ account, ask }) {
  const over = account.phase === "ended";
  const took = account.took;
  return html`<div class="account">
    <p class="summary ${over ? account.outcome : account.phase}">${account.summary}</p>
    ${account.odd.length > 0 && html`<ul class="odd" aria-label="Out of the ordinary">${account.odd.map((odd) => html`<li>${odd}</li>`)}</ul>`}
    ${account.ends && html`<p class="ends"><b>Ends by itself in ${lasting(account.ends.in_ms)}</b> by ${account.ends.deadline}. Then: ${account.ends.then}.</p>`}
    <${Timeline} account=${account} />
    <h3>Blocks</h3>
    <${Held} held=${account.held_by} />
    <h3>Facts</h3>
    <dl>
      <${Fact} name="Room"><${Copy} text=${account.room} /><//>
      <${Fact} name="Request"><${Copy} text=${account.request_id} />${account.answers > 1 && ` answer ${account.answer} of ${account.answers}`}<//>
      <${Fact} name="Trace"><${Copy} text=${account.trace_id} />${account.jaeger && html` <a href=${account.jaeger} target="_blank" rel="noreferrer">open in Jaeger</a>`}<//>
      <${Fact} name="Prompt">${plural(account.prompt_tokens, "token")}, ${count(account.cached_tokens)} cached<//>
      <${Fact} name="Answer">${count(account.delivered_tokens)} of at most ${plural(account.max_tokens, "token")}<//>
      <${Fact} name="First token">${took.first_token_ms == null ? "not yet" : `after ${lasting(took.first_token_ms)}`}<//>
      <${Fact} name="Queued">${lasting(took.queued_ms)} in all; at the door ${lasting(took.prepare_ms)}<//>
      <${Fact} name="Arrived">${account.arrived_unix_ms ? new Date(account.arrived_unix_ms).toLocaleTimeString([], { hour12: false }) : "–"}, ${lasting(account.age_ms)} ${over ? "in all" : "ago"}<//>
    </dl>
    <h3>History</h3>
    <ol class="history">
      ${account.history.map((line) => html`<li class=${line.tone}><time>${at(line.at_us)}</time><span>${line.attempt > 1 ? `(${line.attempt}) ` : ""}${line.what}</span></li>`)}
    </ol>
    ${!over && html`<p><button class="danger" id="abort" onClick=${() => ask(account)}>End this room …</button></p>`}
  </div>`;
}

export function Detail({ what, ask }) {
  const { accounts, why } = useAccounts(what);
  const [chosen, setChosen] = useState(0);
  useEffect(() => setChosen(0), [what]);
  const account = accounts[Math.min(chosen, accounts.length - 1)];
  return html`<aside class="detail" aria-label="Room" id="detail">
    <div class="top">
      <h2>${account ? `Room ${account.room.slice(account.room.indexOf("-") + 1)}` : "Room"}</h2>
      ${accounts.length > 1 && html`<select aria-label="Which of its rooms" onChange=${(event) => setChosen(Number(event.target.value))}>${accounts.map((one, place) => html`<option value=${place}>${one.room}, ${one.phase}</option>`)}</select>`}
      <span class="grow"></span>
      <button class="quiet" onClick=${() => select(null)} title="Close (Esc)" aria-label="Close">✕</button>
    </div>
    ${why ? html`<p class="why">${why}</p>` : account ? html`<${Account} account=${account} ask=${ask} />` : html`<p class="soft">Asking …</p>`}
  </aside>`;
}
