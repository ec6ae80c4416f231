// Latency and throughput of the last five minutes.

import { html, useEffect, useRef } from "./vendor/preact-htm.js";
import { onChange, store } from "./store.js";

// The time of the day, by the watcher's clock.
const clock = (_, seconds) => seconds.map((second) => new Date(second * 1000).toLocaleTimeString([], { hour12: false }));

const PLOTS = [
  { title: "Requests per second", lines: [["completed", "completed", "--decoding"], ["wrong", "failed, expired", "--bad"], ["opened", "opened", "--soft"]] },
  { title: "Tokens per second", lines: [["tokens", "tokens", "--prefilling", true]] },
  { title: "First token, ms", lines: [["first_p50_ms", "half", "--prefilling"], ["first_p99_ms", "99 %", "--draining"]], gaps: true },
  { title: "Between tokens, ms", lines: [["between_p50_ms", "half", "--decoding"], ["between_p99_ms", "99 %", "--draining"]], gaps: true },
];

function columns(series, names) {
  // Seconds of the wall: the gateway's clock has another origin.
  const start = Date.now() / 1000 - series.opened.length;
  return [series.opened.map((_, i) => Math.round(start + i)), ...names.map((name) => series[name])];
}

function Plot({ plot, theme }) {
  const box = useRef(null);
  useEffect(() => {
    const style = getComputedStyle(box.current);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui", size: 42 };
    const size = () => ({ width: Math.max(200, box.current.clientWidth), height: 150 });
    const options = {
      ...size(),
      legend: { live: true },
      cursor: { y: false, points: { size: 6 } },
      scales: { y: { range: (_, low, high) => [0, Math.max(1, (high ?? 0) * 1.1)] } },
      axes: [{ ...axis, size: 24, space: 80, values: clock }, axis],
      series: [
        { value: (_, second) => (second == null ? "" : new Date(second * 1000).toLocaleTimeString([], { hour12: false })) },
        ...plot.lines.map(([, label, name, filled]) => ({
          label,
          stroke: colour(name),
          width: 1.6,
          fill: filled ? colour(name) + "22" : undefined,
          spanGaps: !!plot.gaps,
          points: { show: false },
        })),
      ],
    };
    const names = plot.lines.map(([name]) => name);
    const data = () => (store.series ? columns(store.series, names) : [[], ...names.map(() => [])]);
    const drawn = new uPlot(options, data(), box.current);
    let last = -1;
    const off = onChange(() => {
      const series = store.series;
      const end = series ? series.from_s + series.opened.length : -1;
      if (end !== last) drawn.setData(data());
      last = end;
    });
    const observer = new ResizeObserver(() => drawn.setSize(size()));
    observer.observe(box.current);
    return () => {
      off();
      observer.disconnect();
      drawn.destroy();
    };
  }, [theme]);
  return html`<section class="panel plot" aria-label=${plot.title}><h2>${plot.title}</h2><div ref=${box}></div></section>`;
}

export const Plots = ({ theme }) => html`<div class="plots">${PLOTS.map((plot) => html`<${Plot} key=${plot.title} plot=${plot} theme=${theme} />`)}</div>`;
