/** Draws pictures for the documents as SVG with real text, in the reader's light or dark colours. */

export interface Shown {
  readonly command: string;
  /** the output with the codes of its colours */
  readonly printed: string;
  /** an earlier state of the terminal, shown for a while */
  readonly before?: string;
}

const LINE = 18;
const CHARACTER = 8.43;
const MARGIN = 16;
/** Seconds for which the whole session is shown before it is replayed. */
const SECONDS_OF_ALL = 2.5;
const SECONDS_EACH = 2.5;

/** The SGR codes that a screen writes → CSS classes. */
const CLASSES: Readonly<Record<string, string>> = { 31: "r", 32: "g", 33: "y", 36: "c", 2: "d", 1: "b" };

const STYLE = `
svg{color-scheme:light dark}
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre;fill:#1f2328}
rect{fill:#f6f8fa;stroke:#d0d7de}
.r{fill:#b31d28}.g{fill:#116329}.y{fill:#7d4e00}.c{fill:#0a5a80}.d{fill:#57606a}.b{font-weight:700}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#0d1117;stroke:#30363d}.r{fill:#ff7b72}.g{fill:#56d364}.y{fill:#e3b341}.c{fill:#79c0ff}.d{fill:#9198a1}}
.once{opacity:0}`;

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Returns the line with its colours as elements. Colours begin and end within a line. */
function spans(line: string): string {
  const begin = `${String.fromCharCode(27)}[`;
  const [first = "", ...pieces] = line.split(begin);
  const colored = pieces.map((piece) => {
    const end = piece.indexOf("m");
    const [name, text] = [CLASSES[piece.slice(0, end)], escaped(piece.slice(end + 1))];
    return name === undefined || text === "" ? text : `<tspan class="${name}">${text}</tspan>`;
  });
  return escaped(first) + colored.join("");
}

/** Lines of text, and the times in seconds at which they are hidden and shown again. */
interface Group {
  readonly rows: readonly string[];
  readonly at: number;
  readonly hidden?: number;
}

/** Draws a session with room for `columns` characters. */
export function sessionSvg(session: readonly Shown[], columns: number): string {
  let [row, second] = [0, SECONDS_OF_ALL];
  const textsOf = (lines: readonly string[], from: number) =>
    lines.map((line, index) => `<text x="${MARGIN}" y="${MARGIN + LINE * (from + index + 1) - 4}">${line}</text>`);
  const groups: Group[] = [];
  for (const { command, printed, before } of session) {
    const typed = `<tspan class="g">$</tspan> <tspan class="b">${escaped(command)}</tspan>`;
    const [lines, earlier] = [printed, before ?? ""].map((text) => text.trimEnd().split("\n").map(spans));
    groups.push({ rows: textsOf([typed], row), at: second });
    if (before !== undefined) {
      groups.push({ rows: textsOf(earlier ?? [], row + 1), at: second, hidden: second + SECONDS_EACH });
      second += SECONDS_EACH;
    }
    groups.push({ rows: textsOf(lines ?? [], row + 1), at: second });
    row += 2 + Math.max(lines?.length ?? 0, before === undefined ? 0 : (earlier?.length ?? 0));
    second += SECONDS_EACH;
  }
  const percent = (at: number) => `${((100 * at) / second).toFixed(1)}%`;
  const frames = groups.map(({ at, hidden }, index) => {
    const first = hidden === undefined ? `0%{opacity:1}${percent(SECONDS_OF_ALL - 0.1)}{opacity:0}` : "0%{opacity:0}";
    const last = hidden === undefined ? "" : `${percent(hidden)}{opacity:0}`;
    const name = `f${index}`;
    return `@keyframes ${name}{${first}${percent(at)}{opacity:1}${last}}@media (prefers-reduced-motion:no-preference){.${name}{animation:${name} ${second}s step-end}}`;
  });
  const drawn = groups.map(
    ({ rows, hidden }, index) =>
      `<g class="${hidden === undefined ? "" : "once "}f${index}">\n${rows.join("\n")}\n</g>`,
  );
  const [width, height] = [Math.ceil(columns * CHARACTER) + 2 * MARGIN, (row - 1) * LINE + 2 * MARGIN];
  return `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="A terminal session">
<style>${STYLE}
${frames.join("\n")}</style>
<rect x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="8"/>
${drawn.join("\n")}
</svg>
`;
}

/** An arrow from one lane to another; a step within one lane has the same number twice. */
type Step = readonly [from: number, to: number, text: string];

interface Way {
  readonly title: string;
  readonly lanes: readonly string[];
  readonly steps: readonly Step[];
}

/** Name of a file in docs/pictures → what the picture shows. */
const WAYS: Readonly<Record<string, Way>> = {
  pod: {
    title: "The way of a pod",
    lanes: ["you", "API server", "webhook (ours)", "node"],
    steps: [
      [0, 1, "create a pod"],
      [1, 2, "one HTTPS call"],
      [2, 1, "add these sidecars"],
      [1, 1, "stores the pod with its sidecars"],
      [1, 3, "starts the app and its sidecars"],
    ],
  },
  tick: {
    title: "The way of a tick",
    lanes: ["schedule", "pass (ours)", "API server", "node"],
    steps: [
      [0, 1, "tick"],
      [1, 2, "read ledger and pods"],
      [1, 1, "decides: a batch within the budget"],
      [1, 2, "reserve the batch"],
      [1, 2, "patch its images"],
      [2, 3, "new image"],
      [3, 3, "restarts only the sidecars"],
      [3, 2, "ready again"],
      [1, 2, "write the status"],
    ],
  },
};

const LANE = 185;
const STEP = 34;
const HEAD = 40;

function wayLabel({ title, steps }: Way): string {
  return `${title}: ${steps.map(([, , text]) => text).join("; ")}`;
}

/** Draws a sequence of steps between lanes. */
function waySvg(way: Way): string {
  const center = (lane: number) => LANE * lane + LANE / 2;
  const [width, height] = [LANE * way.lanes.length, HEAD + STEP * way.steps.length + MARGIN];
  const lanes = way.lanes.map(
    (name, lane) =>
      `<text class="b" text-anchor="middle" x="${center(lane)}" y="26">${escaped(name)}</text><line class="l" x1="${center(lane)}" x2="${center(lane)}" y1="${HEAD}" y2="${height - 8}"/>`,
  );
  const steps = way.steps.map(([from, to, text], index) => {
    const y = HEAD + STEP * (index + 1) - 6;
    const [x1, x2] = [center(from), center(to)];
    if (from === to)
      return `<circle class="a" cx="${x1}" cy="${y - 5}" r="4"/><text class="${from === way.lanes.length - 1 ? "g e" : "g"}" x="${from === way.lanes.length - 1 ? x1 - 12 : x1 + 12}" y="${y}">${escaped(text)}</text>`;
    const back = x2 < x1 ? 1 : -1;
    const head = `<path class="a" d="M${x2} ${y}l${7 * back} -4v8z"/>`;
    return `<line class="a" x1="${x1}" x2="${x2}" y1="${y}" y2="${y}"/>${head}<text class="m" text-anchor="middle" x="${(x1 + x2) / 2}" y="${y - 6}">${escaped(text)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(wayLabel(way))}">
<style>${STYLE}
.l{stroke:#d0d7de;stroke-dasharray:3 4}.a{stroke:#0a5a80;fill:#0a5a80;stroke-width:1.5}.e{text-anchor:end}
text{paint-order:stroke;stroke:#f6f8fa;stroke-width:5px}
@media (prefers-color-scheme:dark){.l{stroke:#30363d}.a{stroke:#79c0ff;fill:#79c0ff}text{stroke:#0d1117}}</style>
<rect x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="8"/>
${[...lanes, ...steps].join("\n")}
</svg>
`;
}

/** Returns the pictures of sequences: the file, the text for readers who cannot see it, the content. */
export function wayPictures(): readonly (readonly [path: string, label: string, svg: string])[] {
  return Object.entries(WAYS).map(([name, way]) => [`docs/pictures/${name}.svg`, wayLabel(way), waySvg(way)]);
}

/** Returns the last frame of a picture: the commands, and their output. */
export function sessionOf(svg: string): readonly Shown[] {
  const stays = svg.replaceAll(/<g class="once [\s\S]*?<\/g>/g, "");
  const lines = [...stays.matchAll(/<text [^>]*>(.*)<\/text>/g)].map(([, line = ""]) =>
    line
      .replace(/<[^>]+>/g, "")
      .replaceAll("&lt;", "<")
      .replaceAll("&gt;", ">")
      .replaceAll("&amp;", "&"),
  );
  const session: { command: string; printed: string }[] = [];
  for (const line of lines) {
    const last = session.at(-1);
    if (line.startsWith("$ ")) session.push({ command: line.slice(2), printed: "" });
    else if (last) last.printed += `${line}\n`;
  }
  return session;
}
