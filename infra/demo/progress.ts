/** Shows a rollout while it runs: bars on a terminal, one plain line per change when piped. */
import type { WriteStream } from "node:tty";

interface Progress {
  readonly pods: number;
  readonly updated: number;
  readonly ready: number;
  readonly unavailable: number;
  readonly maxUnavailable: number;
}

export interface ProgressView {
  /** Redraws, or prints a line if anything changed. */
  show(progress: Progress): void;
  /** A line that stays. */
  note(text: string): void;
  /** Leaves the last state standing. */
  done(): void;
}

type Output = Pick<WriteStream, "write"> & { readonly isTTY?: boolean; readonly columns?: number };

const LABEL_WIDTH = 12;
const FIGURES_WIDTH = 16;

function bar(label: string, value: number, total: number, columns: number): string {
  const width = Math.max(5, Math.min(40, columns - LABEL_WIDTH - FIGURES_WIDTH));
  const full = total === 0 ? 0 : Math.round((width * value) / total);
  return `${label.padEnd(LABEL_WIDTH)}${"█".repeat(full)}${"░".repeat(width - full)} ${value}/${total}`;
}

function terminalView(out: Output): ProgressView {
  let drawn = 0;
  const erase = () => {
    if (drawn > 0) out.write(`\x1b[${drawn}A\x1b[0J`);
    drawn = 0;
  };
  let last: Progress | undefined;
  const draw = () => {
    if (last === undefined) return;
    const columns = out.columns ?? 80;
    const lines = [
      bar("updated", last.updated, last.pods, columns),
      bar("ready", last.ready, last.pods, columns),
      bar("unavailable", last.unavailable, last.maxUnavailable, columns),
    ];
    out.write(`${lines.join("\n")}\n`);
    drawn = lines.length;
  };
  return {
    show(progress) {
      erase();
      last = progress;
      draw();
    },
    note(text) {
      erase();
      out.write(`${text}\n`);
      draw();
    },
    done() {
      drawn = 0;
      last = undefined;
    },
  };
}

function plainView(out: Output): ProgressView {
  let last = "";
  return {
    show({ pods, updated, ready, unavailable, maxUnavailable }) {
      const line = `  updated ${updated}/${pods}, ready ${ready}/${pods}, unavailable ${unavailable} of at most ${maxUnavailable}\n`;
      if (line !== last) out.write(line);
      last = line;
    },
    note(text) {
      out.write(`${text}\n`);
    },
    done() {
      last = "";
    },
  };
}

/** @param out a terminal gets bars that redraw in place, anything else plain lines */
export function progressView(out: Output): ProgressView {
  return out.isTTY === true ? terminalView(out) : plainView(out);
}
