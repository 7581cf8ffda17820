/** Tests the output of the command line on a terminal and in a pipe. */
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { diffLines } from "../../functions/cli/commands/preview.ts";
import { duration } from "../../functions/terminal/duration.ts";
import { createScreen, type Screen, widthOf } from "../../functions/terminal/screen.ts";
import { printTable, wrap } from "../../functions/terminal/table.ts";
import { withUnseenEscaped } from "../../shared/go/unseen.ts";
import { runCli } from "./run-cli.ts";

const ESCAPE = "\u001b";

/** Returns a screen and the text that the command wrote to it. */
function screenOf(
  columns: number | undefined,
  mayColor = true,
): { readonly screen: Screen; readonly text: () => string } {
  const written: string[] = [];
  const stream = { isTTY: columns !== undefined, columns: columns ?? 80, write: (text: string) => written.push(text) };
  return { screen: createScreen({ out: stream, err: stream, mayColor }), text: () => written.join("") };
}

const HOSTILE = [
  ["a colour code", `${ESCAPE}[31mred`],
  ["a window title", `${ESCAPE}]0;owned\u0007`],
  ["a code that clears the screen", `${ESCAPE}[2J${ESCAPE}[H`],
  ["a carriage return", "good\rbad"],
  ["a line break", "one\ntwo"],
  ["a backspace", "abc\b\b\b"],
  ["a C1 control character", "\u009b31m"],
  ["a right-to-left override", "\u202eexe.txt"],
  ["a zero-width space", "a\u200bb"],
  ["a soft hyphen", "a\u00adb"],
  ["an invisible tag character", "a\u{e0041}b"],
  ["a DEL character", "a\u007fb"],
] as const;

describe("hostile names:", () => {
  it.each(HOSTILE)("the screen escapes %s in a name and keeps it in JSON", (_title, name) => {
    const { screen, text: shown } = screenOf(80, false);
    screen.line(name, { text: name, color: "red" });
    printTable(screen, ["NAME"], [[name], [{ text: name, color: "green" }]]);
    screen.warn(name);
    screen.text(JSON.stringify({ name }));
    const lines = shown().split("\n");
    for (const line of lines) expect(line).toMatch(/^[\p{L}\p{N}\p{P}\p{S} ]*$/u);
    // A line break in a name adds no line.
    expect(lines).toHaveLength(6);
    expect(JSON.parse(lines.at(-1) ?? "").name).toBe(name);
  });

  it("escaping a name keeps the product's own colours", () => {
    const { screen, text: shown } = screenOf(80);
    screen.line({ text: "ok", color: "green" }, ` ${ESCAPE}[31m`);
    expect(shown()).toBe(`${ESCAPE}[32mok${ESCAPE}[39m \\u001b[31m\n`);
  });
});

describe("colours:", () => {
  it.each([
    ["a terminal with colours allowed", 80, true, true],
    ["a terminal with NO_COLOR or --no-color", 80, false, false],
    ["a pipe", undefined, true, false],
  ] as const)(
    "the output for %s (columns: %s, colours allowed: %s) has colours: %s",
    (_title, columns, mayColor, isColored) => {
      const { screen, text: shown } = screenOf(columns, mayColor);
      screen.line({ text: "x", color: "red" });
      expect(shown().includes(ESCAPE)).toBe(isColored);
    },
  );
});

const ROWS = [
  ["default", "web-6mfn4vckm6-2vp2r", "log-agent-59ff9f946", "fluent/fluent-bit:4.1.1"],
  ["a-very-long-namespace-name", "api-0", "log-agent-7d8d4f5df", "registry.example.com/a/b/c:2026-01-02"],
];

describe("tables:", () => {
  it.each([40, 60, 80, 120])("a table fits into %i columns", (columns) => {
    const { screen, text: shown } = screenOf(columns);
    printTable(screen, ["NAMESPACE", "POD", "REVISION", "IMAGES"], ROWS);
    const widths = shown().trimEnd().split("\n").map(widthOf);
    expect(widths).toHaveLength(3);
    expect(Math.max(...widths)).toBeLessThanOrEqual(columns);
  });

  it("a table cuts long cells in the middle and never cuts the column that must stay whole", () => {
    const { screen, text: shown } = screenOf(60);
    printTable(screen, ["NAMESPACE", "POD", "REVISION", "IMAGES"], ROWS, "POD");
    const lines = shown().split("\n");
    expect(lines[1]).toMatch(/^default +web-6mfn4vckm6-2vp2r +log\S*…\S*46 +flu\S*…\S*\.1$/);
    expect(Math.max(...lines.map(widthOf))).toBeLessThanOrEqual(60);
  });

  it("a table prints the reason of a row uncut below the row if its column would be too narrow", () => {
    const why = "waits for 3 pods that are not ready after their update";
    const shownAt = (columns: number) => {
      const { screen, text: shown } = screenOf(columns, false);
      printTable(
        screen,
        ["NAME", "STATE", "WHY"],
        [
          ["log-agent", "Blocked", why],
          ["other", "Ready", ""],
        ],
        "STATE",
      );
      return shown().split("\n");
    };
    expect(shownAt(45)).toEqual([
      "NAME       STATE",
      "log-agent  Blocked",
      "  waits for 3 pods that are not ready after",
      "  their update",
      "other      Ready",
      "",
    ]);
    expect(shownAt(80)[1]).toBe(`log-agent  Blocked  ${why}`);
    expect(shownAt(50)[1]).toBe("log-agent  Blocked  waits for 3 pod…r their update");
  });

  it("a table in a pipe is never cut", () => {
    const { screen, text: shown } = screenOf(undefined);
    printTable(screen, ["NAMESPACE", "POD", "REVISION", "IMAGES"], ROWS);
    for (const cell of ROWS.flat()) expect(shown()).toContain(cell);
  });

  it("East Asian letters and emoji count as two columns", () => {
    expect(["日本", "👍", "abc", "é"].map(widthOf)).toEqual([4, 2, 3, 1]);
    expect(withUnseenEscaped("日本 👍")).toBe("日本 👍");
  });
});

it("wrap breaks a paragraph at spaces and indents the next lines", () => {
  expect(wrap("one two three four", 10, 2)).toEqual(["one two", "  three", "  four"]);
  expect(wrap("wide", 2)).toEqual(["wide"]);
});

it("diffLines shows the changed lines with three unchanged lines around them", () => {
  const lines = ["a", "b", "c", "d", "e", "f", "g", "h"];
  const texts = diffLines(lines.join("\n"), lines.toSpliced(1, 1, "B", "x").join("\n")).map((part) =>
    typeof part === "string" ? part : part.text,
  );
  expect(texts).toEqual(["  a", "- b", "+ B", "+ x", "  c", "  d", "  e", "  …"]);
});

it.each([
  [0, "0s"],
  [0.5, "500ms"],
  [75, "1m15s"],
  [3600, "1h"],
  [3661, "1h1m1s"],
])("duration writes %d seconds as %s", (seconds, text) => {
  expect(duration(seconds)).toBe(text);
});

it("the command line exits without an error when its reader stops reading", async () => {
  const cli = fileURLToPath(new URL("../../functions/cli.mjs", import.meta.url));
  const child = spawn("sh", ["-c", `"${process.execPath}" "${cli}" install --url https://x | head -n 1`]);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(stdout).toMatch(/^apiVersion: v1\n/);
  expect(stderr).toBe("");
});

describe("help:", () => {
  it("help lists every command, and each command has its own usage and examples", async () => {
    const { stdout } = await runCli(["--help"]);
    const names = [...stdout.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].flatMap(([, name]) => (name ? [name] : []));
    expect(names.length).toBeGreaterThanOrEqual(20);
    for (const name of ["preview", "plan", "explain", "status"]) {
      const { code, stdout: own } = await runCli([name, "--help"]);
      expect([code, own]).toEqual([0, expect.stringMatching(/^Usage: sidecarset [\s\S]*Examples:\n {2}sidecarset/)]);
    }
  });

  it.each([
    ["bash", /complete -F _sidecarset sidecarset/],
    ["zsh", /compdef _sidecarset/],
    ["fish", /complete -c sidecarset/],
  ])("completion prints a script for %s", async (shell, script) => {
    expect((await runCli(["completion", shell])).stdout).toMatch(script);
  });

  it("commands and options are completed without a cluster", async () => {
    expect((await runCli(["complete-words", "--", "pr"])).stdout).toBe("preview\npromote\n");
    expect((await runCli(["complete-words", "--", "set", ""])).stdout).toBe("image\npartition\nmax-unavailable\n");
    expect((await runCli(["complete-words", "--", "plan", "--ready"])).stdout).toBe("--ready-after\n");
  });
});
