import { describe, expect, it } from "vitest";
import { progressView } from "../../infra/demo/summary.ts";

const half = { pods: 20, updated: 10, ready: 18, unavailable: 2, maxUnavailable: 4 };

function output(facts: { isTTY?: boolean; columns?: number } = {}) {
  const written: string[] = [];
  return { ...facts, written, write: (text: string | Uint8Array) => written.push(String(text)) > 0 };
}

describe("progress in a pipe:", () => {
  it("a pipe gets one plain line for each change, without control characters", () => {
    const out = output();
    const view = progressView(out);
    view.show({ ...half, updated: 8 });
    view.show(half);
    view.show(half);
    expect(out.written).toEqual([
      "  updated 8/20, ready 18/20, unavailable 2 of at most 4\n",
      "  updated 10/20, ready 18/20, unavailable 2 of at most 4\n",
    ]);
  });
});

describe("progress on a terminal:", () => {
  it("a terminal gets bars that overwrite the last bars", () => {
    const out = output({ isTTY: true, columns: 80 });
    const view = progressView(out);
    view.show(half);
    view.show({ ...half, updated: 20 });
    expect(out.written[0]).toMatch(/^updated {5}█{20}░{20} 10\/20\n/);
    expect(out.written[1]).toBe("\x1b[3A\x1b[0J");
    expect(out.written[2]).toMatch(/^updated {5}█{40} 20\/20\n/);
  });

  it.each([20, 40, 60, 80, 200])(
    "the bars fit into %i columns, or into 33 columns on a smaller terminal",
    (columns) => {
      const out = output({ isTTY: true, columns });
      progressView(out).show({ ...half, pods: 150_000, updated: 149_999, ready: 149_999 });
      const longest = Math.max(
        ...out.written
          .join("")
          .split("\n")
          .map((line) => line.length),
      );
      expect(longest).toBeLessThanOrEqual(Math.max(33, columns));
    },
  );

  it("a note stays above the bars", () => {
    const out = output({ isTTY: true, columns: 80 });
    const view = progressView(out);
    view.show(half);
    view.note("half way");
    expect(out.written.slice(1, 3)).toEqual(["\x1b[3A\x1b[0J", "half way\n"]);
    expect(out.written[3]).toMatch(/^updated/);
  });

  it("the last bars stay on the terminal after done", () => {
    const out = output({ isTTY: true, columns: 80 });
    const view = progressView(out);
    view.show(half);
    view.done();
    view.note("next");
    expect(out.written.slice(1)).toEqual(["next\n"]);
  });
});
