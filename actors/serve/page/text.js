// Numbers and times as people read them.

export const PHASES = ["queued", "reserving", "prefilling", "pulling", "decoding", "draining"];

export function lasting(ms) {
  if (ms == null) return "–";
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 120_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (ms < 7_200_000) return `${Math.floor(ms / 60_000)} min ${Math.floor(ms / 1000) % 60} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.floor(ms / 60_000) % 60} min`;
}

export function count(n) {
  if (n == null) return "–";
  return Math.round(n).toLocaleString("en-US");
}

export function rate(n) {
  if (n == null) return "–";
  if (n >= 100) return count(n);
  return n >= 10 ? n.toFixed(1) : n.toFixed(2).replace(/\.?0+$/, "") || "0";
}

export function bytes(n) {
  if (n < 1e3) return `${Math.round(n)} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(1)} kB`;
  if (n < 1e9) return `${(n / 1e6).toFixed(1)} MB`;
  return `${(n / 1e9).toFixed(2)} GB`;
}

export function plural(n, one, many = one + "s") {
  return `${count(n)} ${n === 1 ? one : many}`;
}

// The short form of a room's name: its number, which is what differs.
export const short = (room) => "#" + room.slice(room.indexOf("-") + 1);
