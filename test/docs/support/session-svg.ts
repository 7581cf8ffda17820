/** A session of a terminal as a picture: text that stays text, in the reader's colours, a command after the other. */

export interface Shown {
  readonly command: string;
  /** with the codes of its colours */
  readonly printed: string;
}

const LINE = 18;
const CHARACTER = 8.43;
const MARGIN = 16;
const SECONDS_EACH = 2.5;

/** SGR codes that a screen writes → classes. */
const CLASSES: Readonly<Record<string, string>> = { 31: "r", 32: "g", 33: "y", 36: "c", 2: "d", 1: "b" };

const STYLE = `
svg{color-scheme:light dark}
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre;fill:#1f2328}
rect{fill:#f6f8fa;stroke:#d0d7de}
.r{fill:#b31d28}.g{fill:#116329}.y{fill:#7d4e00}.c{fill:#0a5a80}.d{fill:#57606a}.b{font-weight:700}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#0d1117;stroke:#30363d}.r{fill:#ff7b72}.g{fill:#56d364}.y{fill:#e3b341}.c{fill:#79c0ff}.d{fill:#9198a1}}
g{animation:appear .3s backwards}
@keyframes appear{from{opacity:0}}
@media (prefers-reduced-motion:reduce){g{animation:none}}`;

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Colours begin and end within a line. */
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

/** Wide enough for `columns` characters. */
export function sessionSvg(session: readonly Shown[], columns: number): string {
  let row = 0;
  const groups = session.map(({ command, printed }, index) => {
    const lines = [`<tspan class="g">$</tspan> <tspan class="b">${escaped(command)}</tspan>`];
    lines.push(...printed.trimEnd().split("\n").map(spans));
    const texts = lines.map((line) => `<text x="${MARGIN}" y="${MARGIN + LINE * ++row - 4}">${line}</text>`);
    row++;
    return `<g style="animation-delay:${index * SECONDS_EACH}s">\n${texts.join("\n")}\n</g>`;
  });
  const [width, height] = [Math.ceil(columns * CHARACTER) + 2 * MARGIN, (row - 1) * LINE + 2 * MARGIN];
  return `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="A terminal session">
<style>${STYLE}</style>
<rect x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="8"/>
${groups.join("\n")}
</svg>
`;
}

/** What a picture shows: the commands, and what they print. */
export function sessionOf(svg: string): readonly Shown[] {
  const lines = [...svg.matchAll(/<text [^>]*>(.*)<\/text>/g)].map(([, line = ""]) =>
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
