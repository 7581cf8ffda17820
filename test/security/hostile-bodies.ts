/**
 * Bodies that try to make the webhooks fail: by depth, number, size, names and patterns. Each run has the same bodies.
 */

export interface HostileBody {
  readonly title: string;
  readonly path: string;
  readonly body: string;
}

const PATHS = {
  pod: "/mutate-pod",
  mutate: "/mutate-apps-kruise-io-sidecarset",
  validate: "/validate-apps-kruise-io-sidecarset",
  convert: "/convert",
} as const;
type Webhook = keyof typeof PATHS;
const WEBHOOKS = Object.keys(PATHS) as Webhook[];

/** Returns random numbers by mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The text of an object such as `{"a": 1}`, written by hand where JSON.stringify would write it differently. */
type Text = string;

const nested = (depth: number, open: string, close: string, core = "1"): Text =>
  open.repeat(depth) + core + close.repeat(depth);
const keys = (count: number, name: (index: number) => string, value = '"v"'): Text =>
  `{${Array.from({ length: count }, (_, index) => `"${name(index)}":${value}`).join(",")}}`;
const list = (count: number, element: (index: number) => Text): Text =>
  `[${Array.from({ length: count }, (_, index) => element(index)).join(",")}]`;
const text = (value: string): Text => JSON.stringify(value);

const REDOS = [
  "(a+)+$",
  "^(([a-z])+.)+[A-Z]([a-z])+$",
  "(a|aa)+$",
  "(.*a){25}",
  "((a{1,100}){1,100}){1,100}",
  "[",
  "(?=a)b",
  "\\1(a)",
];
const NAMES = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf", "then", "toJSON"];
const QUANTITIES = ["1e999999999", "-1", "9".repeat(20_000), `0.${"0".repeat(20_000)}1`, "1Ei", "NaN", "Infinity", ""];

/** Functions that return a value for any field, with a size between 0 and 1. */
const VALUES: Readonly<Record<string, (size: number, random: () => number) => Text>> = {
  "nested arrays": (size) => nested(Math.ceil(size * 200_000), "[", "]"),
  "nested objects": (size) => nested(Math.ceil(size * 100_000), '{"a":', "}"),
  "many keys": (size) => keys(Math.ceil(size * 100_000), (index) => `k${index}`),
  "many keys that are numbers": (size) => keys(Math.ceil(size * 100_000), (index) => `${index * 7}`),
  "the same key again and again": (size) => keys(Math.ceil(size * 100_000), () => "a"),
  "a long list": (size) => list(Math.ceil(size * 200_000), (index) => `${index}`),
  "a list of objects": (size) => list(Math.ceil(size * 50_000), () => '{"name":"a"}'),
  "a list of nulls": (size) => list(Math.ceil(size * 200_000), () => "null"),
  "a huge text": (size) => text("a".repeat(Math.ceil(size * 5_000_000))),
  "a huge text of escapes": (size) => `"${"\\u0000".repeat(Math.ceil(size * 800_000))}"`,
  "halves of surrogate pairs": (size) => `"${"\\ud800".repeat(Math.ceil(size * 400_000))}"`,
  "a huge number": (size) => "9".repeat(Math.ceil(size * 200_000) + 1),
  "a number with a huge exponent": (size) => `1e${"9".repeat(Math.ceil(size * 1000))}`,
  "names that every object has": (_, random) =>
    keys(NAMES.length, (index) => NAMES[index] ?? "", random() < 0.5 ? '{"polluted":true}' : "null"),
  "JSON inside a text": (size) => text(nested(Math.ceil(size * 50_000), "[", "]")),
  "a pattern that backtracks": (_, random) => text(REDOS[Math.floor(random() * REDOS.length)] ?? ""),
  "a quantity": (_, random) => text(QUANTITIES[Math.floor(random() * QUANTITIES.length)] ?? ""),
  "an expression": (size) => text(nested(Math.ceil(size * 20_000), "(", ")", "max(cpu)*50%")),
};

type Place = (value: Text) => Text;

const container = (more: Text = ""): Text => `{"name":"agent","image":"agent:1"${more}}`;
const spec = (more: Text, containers: Text = list(1, () => container())): Text =>
  `{"selector":{"matchLabels":{"a":"b"}},"containers":${containers}${more}}`;
const sidecarSet = (ofSpec: Text, metadata: Text = '{"name":"web"}'): Text =>
  `{"apiVersion":"apps.kruise.io/v1beta1","kind":"SidecarSet","metadata":${metadata},"spec":${ofSpec}}`;
const pod = (ofSpec: Text, metadata: Text = '{"name":"web","labels":{"app":"web"}}'): Text =>
  `{"apiVersion":"v1","kind":"Pod","metadata":${metadata},"spec":${ofSpec}}`;
const app = (more: Text = ""): Text => `{"name":"main","image":"nginx:1"${more}}`;

/** Places for the value in a SidecarSet. */
const IN_SIDECARSET: Readonly<Record<string, Place>> = {
  itself: (value) => value,
  metadata: (value) => sidecarSet(spec(""), value),
  labels: (value) => sidecarSet(spec(""), `{"name":"web","labels":${value}}`),
  annotations: (value) => sidecarSet(spec(""), `{"name":"web","annotations":{"kruise.io/sidecarset-hash":${value}}}`),
  spec: (value) => sidecarSet(value),
  selector: (value) => sidecarSet(`{"selector":${value},"containers":[${container()}]}`),
  "selector values": (value) =>
    sidecarSet(
      `{"selector":{"matchExpressions":[{"key":"a","operator":"In","values":${value}}]},"containers":[${container()}]}`,
    ),
  containers: (value) => sidecarSet(spec("", value)),
  "a container": (value) =>
    sidecarSet(
      spec(
        "",
        list(1, () => value),
      ),
    ),
  env: (value) =>
    sidecarSet(
      spec(
        "",
        list(1, () => container(`,"env":${value}`)),
      ),
    ),
  resources: (value) =>
    sidecarSet(
      spec(
        "",
        list(1, () => container(`,"resources":{"limits":{"cpu":${value}}}`)),
      ),
    ),
  "resources policy": (value) =>
    sidecarSet(
      spec(
        "",
        list(1, () =>
          container(
            `,"resourcesPolicy":{"targetContainersMode":"sum","targetContainersNameRegex":${value},"resourceExpr":{"limits":{"cpu":${value}}}}`,
          ),
        ),
      ),
    ),
  volumes: (value) => sidecarSet(spec(`,"volumes":${value}`)),
  "patch of metadata": (value) =>
    sidecarSet(spec(`,"patchPodMetadata":[{"patchPolicy":"MergePatchJson","annotations":{"a":${value}}}]`)),
  "update strategy": (value) =>
    sidecarSet(spec(`,"updateStrategy":{"selector":${value},"partition":${value},"maxUnavailable":${value}}`)),
  "injection strategy": (value) => sidecarSet(spec(`,"injectionStrategy":{"revision":{"revisionName":${value}}}`)),
  image: (value) => sidecarSet(spec("", `[{"name":"agent","image":${value}}]`)),
};

/** Places for the value in a pod. */
const IN_POD: Readonly<Record<string, Place>> = {
  itself: (value) => value,
  metadata: (value) => pod(`{"containers":[${app()}]}`, value),
  labels: (value) => pod(`{"containers":[${app()}]}`, `{"name":"web","labels":${value}}`),
  annotations: (value) =>
    pod(
      `{"containers":[${app()}]}`,
      `{"name":"web","labels":{"app":"web"},"annotations":{"kruise.io/sidecarset-hash":${value},"kruise.io/sidecarset-injected-list":${value},"patched":${value}}}`,
    ),
  spec: (value) => pod(value),
  containers: (value) => pod(`{"containers":${value}}`),
  "many containers": (value) =>
    pod(`{"containers":${list(5_000, (index) => `{"name":"c${index}","image":${index === 0 ? value : '"i"'}}`)}}`),
  env: (value) => pod(`{"containers":[${app(`,"env":${value}`)}]}`),
  resources: (value) => pod(`{"containers":[${app(`,"resources":{"limits":{"cpu":${value},"memory":${value}}}`)}]}`),
  mounts: (value) => pod(`{"containers":[${app(`,"volumeMounts":${value}`)}]}`),
  volumes: (value) => pod(`{"containers":[${app()}],"volumes":${value}}`),
};

function request(webhook: Webhook, object: Text): Text {
  if (webhook === "convert") {
    const objects = `"uid":"u","desiredAPIVersion":"apps.kruise.io/v1alpha1","objects":[${object}]`;
    return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{${objects}}}`;
  }
  const [group, version, resource] =
    webhook === "pod" ? ["", "v1", "pods"] : ["apps.kruise.io", "v1beta1", "sidecarsets"];
  const what = `"resource":{"group":"${group}","version":"${version}","resource":"${resource}"},"namespace":"default"`;
  const operation = `"uid":"u","operation":"CREATE"`;
  return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{${operation},${what},"object":${object}}}`;
}

const MAX_BYTES = 7 * 1024 * 1024;
const SIZES = [1, 0.5, 0.1, 0.01];

function pick<T>(of: Readonly<Record<string, T>>, index: number): readonly [string, T] {
  const entries = Object.entries(of);
  const entry = entries[index % entries.length];
  if (entry === undefined) throw new Error("nothing to pick from");
  return entry;
}

function bodyOf(index: number, random: () => number): HostileBody {
  const webhook = WEBHOOKS[index % WEBHOOKS.length] ?? "pod";
  const round = Math.floor(index / WEBHOOKS.length);
  const [kind, value] = pick(VALUES, round);
  const turn = Math.floor(round / Object.keys(VALUES).length);
  const [place, put] = pick(webhook === "pod" ? IN_POD : IN_SIDECARSET, turn + (round % 3));
  const size = SIZES[Math.floor(random() * SIZES.length)] ?? 1;
  const title = `${webhook}: ${kind} as ${place}, size ${size}`;
  return { title, path: PATHS[webhook], body: request(webhook, put(value(size, random))) };
}

/** Yields `count` bodies, all small enough for the front door. */
export function* hostileBodies(count: number): Generator<HostileBody> {
  const random = randomOf(20_261_121);
  for (let index = 0, made = 0; made < count; index++) {
    const hostile = bodyOf(index, random);
    if (hostile.body.length > MAX_BYTES) continue;
    made++;
    yield hostile;
  }
}
