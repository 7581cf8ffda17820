/**
 * `npm run fuzz:kubernetes -- --parts 20000 [--from N]` compares the product's validation and decoder with Kubernetes
 * 1.32's own. The parts are random containers and volumes; Go builds Kubernetes' code. Exits 1 for a difference that
 * compatibility.md does not name.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SidecarSetSpec } from "../../shared/api/sidecarset.ts";
import { validatePod } from "../../shared/core/pod/validate/pod.ts";
import { goJson } from "../../shared/go/json/go-json.ts";
import { decodeGo } from "../../shared/go/types/decode-go.ts";
import { SIDECAR_SET } from "../../shared/go/types/sidecarset.ts";
import { keepReport } from "../simulation/report-file.ts";
import { readOptions } from "../support/read-options.ts";

const SHOWN = 10;
const CHUNK = 5_000;
const MOST_BYTES = 512 * 1024 * 1024;
const SOURCES = join(import.meta.dirname, "../e2e/control-plane/kubernetes");

const { values } = readOptions({
  options: { parts: { type: "string" }, from: { type: "string" }, json: { type: "string" } },
});
const count = Number(values.parts ?? 20_000);
const from = Number(values.from ?? 0);
const print = (line: string) => void process.stdout.write(`${line}\n`);

interface Validated {
  readonly input: SidecarSetSpec;
  readonly problems: readonly { readonly Type: string; readonly Field: string; readonly Detail: string }[];
}

interface DecodedByGo {
  readonly input: { readonly spec: SidecarSetSpec };
  readonly kept?: string;
  readonly refused?: string;
}

/**
 * Errors that neither later versions nor the product give (row W15): names of variables, and `resizePolicy` of native
 * sidecars.
 */
const IS_NEWER = /a valid environment variable name must|\|must not be set for init containers$/;
/**
 * Errors about a container's claims. The pod names these claims without a slash, so both sides refuse them for that
 * reason.
 */
const IS_OF_A_CLAIM = /^FieldValueDuplicate\|.*\.claims\[\d+\]\|$/;
const isCompared = (text: string) => !IS_NEWER.test(text) && !IS_OF_A_CLAIM.test(text);

function difference(ours: readonly string[], theirs: readonly string[]): string | undefined {
  const [mine, others] = [ours, theirs].map((texts) => texts.filter(isCompared).toSorted());
  return JSON.stringify(mine) === JSON.stringify(others) ? undefined : `ours ${mine}; Kubernetes' ${others}`;
}

function differenceOfValidation({ input, problems }: Validated): string | undefined {
  const ours = validatePod(input).map(({ type, field, detail }) => `${type}|${field}|${detail}`);
  return difference(
    ours,
    problems.map(({ Type, Field, Detail }) => `${Type}|${Field}|${Detail}`),
  );
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(fields.map(([name, field]) => [name, inOrder(field)]));
}

/** Removes volumes with an unknown source. The product keeps these until the webhook refuses them by name. */
function knownSources({ volumes, ...spec }: SidecarSetSpec): object {
  const known = volumes?.map((volume) => {
    const { unknownField: _, Name: __, ...rest } = volume as unknown as Record<string, unknown>;
    return rest;
  });
  return known === undefined ? spec : { ...spec, volumes: known };
}

function differenceOfDecoding({ input, kept, refused }: DecodedByGo): string | undefined {
  const decoded = decodeGo(SIDECAR_SET, input);
  if (decoded.kind === "DecodeError") return refused === undefined ? `we refuse: ${decoded.message}` : undefined;
  if (refused !== undefined) return `only Kubernetes refuses: ${refused}`;
  const { updateStrategy: _, injectionStrategy: __, ...spec } = decoded.value.spec;
  const ours = goJson(inOrder(knownSources(spec as SidecarSetSpec)));
  const theirs = goJson(inOrder(JSON.parse(kept ?? "")));
  return ours === theirs ? undefined : `ours ${ours}; Kubernetes' ${theirs}`;
}

const folder = mkdtempSync(join(tmpdir(), "sidecarset-parts-"));
const program = join(folder, "parts");
const totals = { compared: 0, refused: 0, different: 0 };
try {
  execFileSync("go", ["build", "-modfile=versions/1.32.mod", "-o", program, "./parts"], {
    cwd: SOURCES,
    stdio: "inherit",
  });
  compareAll("validate", differenceOfValidation, ({ problems }) => problems.length > 0);
  compareAll("decode", differenceOfDecoding, ({ refused }) => refused !== undefined);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (values.json) keepReport(values.json, "fuzz-kubernetes", totals);
process.exitCode = totals.refused > totals.compared / 10 && totals.different === 0 ? 0 : 1;

/** Yields each part with its seed. */
function* partsOf<T>(way: string): Generator<readonly [number, T]> {
  for (let begin = from; begin < from + count; begin += CHUNK) {
    const size = Math.min(CHUNK, from + count - begin);
    const lines = execFileSync(program, [way, `${begin}`, `${size}`], { encoding: "utf8", maxBuffer: MOST_BYTES });
    for (const [index, line] of lines.trimEnd().split("\n").entries()) yield [begin + index, JSON.parse(line) as T];
  }
}

function compareAll<T>(way: string, differenceOf: (one: T) => string | undefined, isRefused: (one: T) => boolean) {
  let [compared, refused, different] = [0, 0, 0];
  for (const [seed, one] of partsOf<T>(way)) {
    const found = differenceOf(one);
    compared++;
    if (isRefused(one)) refused++;
    if (found === undefined) continue;
    different++;
    if (different <= SHOWN) print(`FAIL ${way} ${seed}: ${found.slice(0, 500)}`);
  }
  print(`${way}: ${compared} compared, ${refused} of them refused by Kubernetes, ${different} different`);
  totals.compared += compared;
  totals.refused += refused;
  totals.different += different;
}
