// The live page of the admin listener.

import { html, render, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { act, select, useStore, watch } from "./store.js";
import { Detail } from "./detail.js";
import { Header, Tiles, Troubles } from "./glance.js";
import { LanesPanel } from "./lanes.js";
import { Picture } from "./picture.js";
import { Plots } from "./plots.js";
import { Table } from "./table.js";

const KEYS = [
  ["/", "search"],
  ["↑ ↓", "the next room; Page Up, Page Down, Home and End as well"],
  ["Enter", "in the search: open the first room found, or ask for one that ended"],
  ["Esc", "close"],
  ["t", "light, dark, or as the system"],
  ["?", "these keys"],
];

// Nothing is done to a cluster by a slip of the hand.
function Confirm({ question, done }) {
  const dialog = useRef(null);
  const [said, setSaid] = useState(null);
  useEffect(() => dialog.current.showModal(), []);
  const go = async () => {
    const answer = await act(question.path);
    if (answer.done) done(answer.said);
    else setSaid(answer.said);
  };
  return html`<dialog ref=${dialog} onClose=${() => done(null)} aria-labelledby="question">
    <h2 id="question">${question.title}</h2>
    <p>${question.text}</p>
    ${said && html`<p class="why" role="alert">${said}</p>`}
    <p class="buttons">
      <button onClick=${() => done(null)} autofocus>Cancel</button>
      <button class="danger" id="confirm" onClick=${go}>${question.verb}</button>
    </p>
  </dialog>`;
}

function Help({ done }) {
  const dialog = useRef(null);
  useEffect(() => dialog.current.showModal(), []);
  return html`<dialog ref=${dialog} onClose=${done} aria-label="Keys">
    <h2>Keys</h2>
    <dl class="keys">${KEYS.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <p class="buttons"><button onClick=${done} autofocus>Close</button></p>
  </dialog>`;
}

const THEME = "innkeeper-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

// Before anything is drawn: what is drawn on a canvas asks for its colours once.
function wear(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}
wear(localStorage.getItem(THEME));

// What was chosen (nothing: as the system), and what that is now.
function useTheme() {
  const [chosen, choose] = useState(() => localStorage.getItem(THEME));
  const [system, setSystem] = useState(dark.matches);
  useEffect(() => {
    const follow = () => setSystem(dark.matches);
    dark.addEventListener("change", follow);
    return () => dark.removeEventListener("change", follow);
  }, []);
  const next = () =>
    choose((before) => {
      const theme = before == null ? "dark" : before === "dark" ? "light" : null;
      wear(theme);
      if (theme) localStorage.setItem(THEME, theme);
      else localStorage.removeItem(THEME);
      return theme;
    });
  return [chosen, chosen ?? (system ? "dark" : "light"), next];
}

function App() {
  const { selected } = useStore();
  const [chosen, theme, nextTheme] = useTheme();
  const [question, setQuestion] = useState(null);
  const [help, setHelp] = useState(false);
  const [notice, setNotice] = useState(null);
  const search = useRef(null);

  useEffect(() => {
    const follow = () => select(decodeURIComponent(location.hash.slice(1)) || null);
    follow();
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => {
    const keys = (event) => {
      if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
      const typing = event.target.closest?.("input, select, textarea");
      if (event.key === "Escape" && !typing) select(null);
      if (typing) return;
      if (event.key === "/") {
        event.preventDefault();
        search.current.focus();
      }
      if (event.key === "t") nextTheme();
      if (event.key === "?") setHelp(true);
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  useEffect(() => {
    if (!notice) return;
    const timer = setTimeout(() => setNotice(null), 6000);
    return () => clearTimeout(timer);
  }, [notice]);

  const askWorker = (worker, verb) =>
    setQuestion({
      path: `/workers/${encodeURIComponent(worker.name)}/${verb}`,
      title: verb === "drain" ? `Drain ${worker.name}?` : `Let ${worker.name} take rooms again?`,
      text:
        verb === "drain"
          ? `It takes no new rooms, from any gateway. The ${worker.rooms_held} rooms of this one that are there finish. It can be undone here at any time.`
          : "It takes new rooms again, from every gateway.",
      verb: verb === "drain" ? "Drain" : "Undrain",
    });
  const askRoom = (account) =>
    setQuestion({
      path: `/rooms/${encodeURIComponent(account.room)}/abort`,
      title: "End this room?",
      text: `Its client (request ${account.request_id}) is told that the answer was aborted. Its blocks come back. This cannot be undone.`,
      verb: "End it",
    });
  const answered = (said) => {
    setQuestion(null);
    if (said) setNotice(said);
  };
  return html`
    <${Header} theme=${chosen} onTheme=${nextTheme} onHelp=${() => setHelp(true)} />
    <main class=${selected ? "with-detail" : ""}>
      <div class="board">
        <${Troubles} />
        <${Tiles} />
        <div class="pair"><${Picture} ask=${askWorker} /><${LanesPanel} theme=${theme} /></div>
        <${Plots} theme=${theme} />
        <${Table} searchRef=${search} />
      </div>
      ${selected && html`<${Detail} what=${selected} ask=${askRoom} />`}
    </main>
    ${notice && html`<p class="notice" role="status">${notice}</p>`}
    ${question && html`<${Confirm} question=${question} done=${answered} />`}
    ${help && html`<${Help} done=${() => setHelp(false)} />`}
  `;
}

watch();
const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
