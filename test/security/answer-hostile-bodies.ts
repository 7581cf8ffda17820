/** Runs in a process with little memory: answers every hostile body and prints the times. `node … COUNT` */
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";
import { createLog } from "../../shared/log.ts";
import { readConfig } from "../../shared/settings/config.ts";
import { podAdmission } from "../../shared/webhook/handlers/pod-admission.ts";
import { answerConversions, convertSidecarSets } from "../../shared/webhook/handlers/sidecarset-conversion.ts";
import { sidecarSetValidation } from "../../shared/webhook/handlers/validation.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import type { ClusterView } from "../../shared/webhook/view/cluster-view.ts";
import { type HostileBody, hostileBodies } from "./hostile-bodies.ts";

const { featureGates, kruiseNamespace } = readConfig({});

/**
 * SidecarSets for the bodies' pods: with a plain sidecar, with a share of the app's resources, and with patched
 * annotations.
 */
const sidecarSets = [
  { containers: [{ name: "agent", image: "agent:1", shareVolumePolicy: { type: "enabled" } }] },
  {
    containers: [
      {
        name: "proxy",
        image: "proxy:1",
        resourcesPolicy: {
          targetContainersMode: "sum",
          targetContainersNameRegex: "^(a+)+$|main",
          resourceExpr: { limits: { cpu: "max(cpu*50%, 50m)", memory: "200Mi" }, requests: {} },
        },
      },
    ],
    patchPodMetadata: [{ patchPolicy: "MergePatchJson", annotations: { patched: '{"a":1}' } }],
  },
].map(
  (spec, index) =>
    ({
      apiVersion: "apps.kruise.io/v1beta1",
      kind: "SidecarSet",
      metadata: {
        name: `set-${index}`,
        annotations: { "kruise.io/sidecarset-hash": "h", "kruise.io/sidecarset-hash-without-image": "h" },
      },
      spec: { selector: { matchLabels: { app: "web" } }, ...spec },
    }) as unknown as SidecarSet,
);
const view: ClusterView = {
  listSidecarSets: async () => ({ value: { sidecarSets, index: indexSidecarSets(sidecarSets) } }),
  getNamespace: async () => ({ value: { metadata: { name: "default" } } }),
  findRevisions: async () => ({ value: [] }),
  getConfigMap: async () => ({ value: undefined }),
};
const answer = webhookApp({
  log: createLog("info", () => undefined),
  isKnown: async () => true,
  admissions: {
    "/mutate-pod": podAdmission({ view, featureGates, kruiseNamespace }),
    "/mutate-apps-kruise-io-sidecarset": mutateSidecarSet,
    "/validate-apps-kruise-io-sidecarset": sidecarSetValidation({ view, featureGates, kruiseNamespace }),
  },
  conversions: { "/convert": answerConversions(convertSidecarSets) },
});

/** Returns the processor time of only this process. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

async function take({ path, body }: HostileBody): Promise<{ readonly ms: number; readonly status: number }> {
  const readBody = async (maxBytes: number) => (Buffer.byteLength(body) > maxBytes ? undefined : body);
  const headers = { "content-type": "application/json" };
  const begin = cpuMs();
  const { status } = await answer({ method: "POST", path, query: "timeout=10s", headers, readBody });
  return { status, ms: cpuMs() - begin };
}

const MEGABYTE = `[${"1,".repeat(500_000)}1]`;

/** Measures how long this machine now needs to read and write a megabyte of JSON. */
function megabyteMs(): number {
  const begin = cpuMs();
  JSON.stringify(JSON.parse(MEGABYTE));
  return cpuMs() - begin;
}

/** The most tries of a body that seems to take much work: only a really hard body is slow each time. */
const ATTEMPTS = 8;
/** The limit, in megabytes of JSON that are read and written just before and after. A slow machine is slow at both. */
const LIMIT_MEGABYTES = 25;

interface Work {
  readonly status: number;
  readonly megabytes: number;
}

async function workOf(hostile: HostileBody): Promise<Work> {
  const before = megabyteMs();
  const { ms, status } = await take(hostile);
  return { status, megabytes: ms / Math.max(before, megabyteMs(), Number.EPSILON) };
}

const statuses: Record<number, number> = {};
let [bodies, worstMegabytes, worst] = [0, 0, ""];
const hard: string[] = [];
for (const hostile of hostileBodies(Number(process.argv[2]))) {
  let { megabytes, status } = await workOf(hostile);
  for (let attempt = 1; attempt < ATTEMPTS && megabytes > LIMIT_MEGABYTES / 2; attempt++)
    megabytes = Math.min(megabytes, (await workOf(hostile)).megabytes);
  bodies++;
  statuses[status] = (statuses[status] ?? 0) + 1;
  if (megabytes > LIMIT_MEGABYTES) hard.push(`${hostile.title}: ${Math.round(megabytes)} MB`);
  if (megabytes > worstMegabytes) [worstMegabytes, worst] = [megabytes, hostile.title];
}
const isPolluted = "polluted" in {} || Object.keys(Object.prototype).length > 0;
process.stdout.write(
  JSON.stringify({ bodies, statuses, worstMegabytes, worst, hard, limitMegabytes: LIMIT_MEGABYTES, isPolluted }),
);
