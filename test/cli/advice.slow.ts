/** Carries out the product's printed advice, and checks its promise. */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet, SidecarSetSpec } from "../../shared/api/sidecarset.ts";
import {
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NAMESPACES,
  PODS,
  type Resource,
  SIDECARSETS,
} from "../../shared/kube/port.ts";
import { isReady } from "../controller/fixture.ts";
import { PATIENT } from "../support/patient.ts";
import { type ServedCluster, startServedCluster } from "../webhook/cluster.ts";
import { runHere } from "./run-cli.ts";

const REPLICAS = 2;
const apps = (plural: string): Resource => ({ group: "apps", version: "v1", plural, namespaced: true });
const DEPLOYMENTS = apps("deployments");

let served: ServedCluster;
beforeAll(async () => {
  served = await startServedCluster(100);
  await served.client.create(NAMESPACES, { metadata: { name: "shop" } });
});
afterAll(() => served?.close());

async function cli(...args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await runHere(["--kubeconfig", served.kubeconfig, ...args]);
  return stdout + stderr;
}

/** Carries out a command as its reader would. */
async function execute(command: string): Promise<void> {
  const words = command.split(" ");
  if (words.shift() !== "sidecarset") return await executeKubectl(words);
  const { code, stderr } = await runHere(["--kubeconfig", served.kubeconfig, ...words]);
  expect([command, code, stderr]).toEqual([command, 0, ""]);
}

/** Carries out the kubectl commands of advice. */
async function executeKubectl(words: string[]): Promise<void> {
  const namespace = words[0] === "-n" ? (words.splice(0, 2)[1] ?? "") : "";
  const [verb = "", kind = "", ...names] = words;
  const merge = (resource: Resource, key: { readonly namespace?: string; readonly name: string }, body: object) =>
    served.client.patch(resource, key, { type: "merge", body });
  const act: Readonly<Record<string, () => Promise<unknown>>> = {
    async rollout() {
      const annotations = { "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z" };
      const name = names[0]?.replace("deployment/", "") ?? "";
      await merge(DEPLOYMENTS, { namespace, name }, { spec: { template: { metadata: { annotations } } } });
    },
    delete: () => Promise.all(names.map((name) => served.client.delete(PODS, { namespace, name }, {}))),
    async annotate() {
      const [key = "", value = ""] = words.at(-1)?.split("=") ?? [];
      await merge(SIDECARSETS, { name: words.at(-2) ?? "" }, { metadata: { annotations: { [key]: value } } });
    },
  };
  expect([verb in act, verb === "delete" ? kind : "pod"]).toEqual([true, "pod"]);
  await act[verb]?.();
}

const setOf = (name: string, spec: Partial<SidecarSetSpec> = {}): SidecarSet => ({
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name },
  spec: {
    selector: { matchLabels: { app: name } },
    containers: [{ name: "agent", image: "agent:1" }],
    updateStrategy: { type: "RollingUpdate", maxUnavailable: "100%" },
    ...spec,
  },
});
const createSet = (name: string, spec?: Partial<SidecarSetSpec>) =>
  vi.waitFor(() => served.client.create<SidecarSet>(SIDECARSETS, setOf(name, spec)), PATIENT);
const readSet = (name: string) => served.client.get<SidecarSet>(SIDECARSETS, { name });
const change = (name: string, body: object) =>
  served.client.patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body });
async function release(name: string, image: string, updateStrategy: object = {}): Promise<void> {
  const containers = (await readSet(name)).spec.containers?.map((one) => ({ ...one, image }));
  await change(name, { spec: { containers, updateStrategy } });
}

async function createPods(app: string, kind: "Deployment" | "ReplicaSet" = "Deployment"): Promise<void> {
  const spec = { containers: [{ name: "main", image: "main:1" }] };
  await served.client.create(apps(`${kind.toLowerCase()}s`), {
    apiVersion: "apps/v1",
    kind,
    metadata: { name: app, namespace: "shop" },
    spec: {
      replicas: REPLICAS,
      selector: { matchLabels: { app } },
      template: { metadata: { labels: { app } }, spec },
    },
  } as KubernetesObject);
}

async function podsRun(app: string, image: string | undefined): Promise<void> {
  await vi.waitFor(async () => {
    const { items } = await served.client.list<Pod>(PODS, { namespace: "shop", labelSelector: `app=${app}` });
    const alive = items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
    const images = alive.map(({ spec }) => spec.containers.find(({ name }) => name === "agent")?.image);
    expect([images, alive.every(isReady)]).toEqual([Array(REPLICAS).fill(image), true]);
  }, PATIENT);
}

/** Waits until a pass has recorded that the rollout of `image` is complete. */
async function settled(name: string, image: string): Promise<void> {
  await podsRun(name, image);
  await vi.waitFor(async () => {
    const rows: readonly Row[] = JSON.parse(await cli("history", name, "-o", "json"));
    expect(rows.find(({ isCurrent }) => isCurrent)?.outcome).toBe("ready");
  }, PATIENT);
}

interface Row {
  readonly isCurrent: boolean;
  readonly outcome: string;
}

/** Releases the images one after the other on a SidecarSet and its pods. */
async function released(name: string, ...images: readonly string[]): Promise<void> {
  await createSet(name);
  await createPods(name);
  await settled(name, "agent:1");
  for (const image of images) {
    await release(name, image);
    await settled(name, image);
  }
}

interface Situation {
  readonly what: string;
  /** creates the row's state; `name`: the name of the SidecarSet and of the workload */
  readonly given: (name: string) => Promise<unknown>;
  /** the words of the command line that prints the advice */
  readonly asked: (name: string) => readonly string[];
  /** the command in the output */
  readonly command: RegExp;
  readonly comesTrue: (name: string) => Promise<unknown>;
}

const brokenRelease = async (name: string) => {
  await released(name);
  await release(name, "agent:does-not-exist");
};
const podsLack = async (name: string, kind: "Deployment" | "ReplicaSet") => {
  await createPods(name, kind);
  await podsRun(name, undefined);
  await createSet(name);
};
const withoutWebhook = async (work: () => Promise<unknown>) => {
  const { items } = await served.client.list<KubernetesObject>(MUTATING_WEBHOOK_CONFIGURATIONS, {});
  for (const { metadata } of items)
    await served.client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, { name: metadata?.name ?? "" }, {});
  try {
    await work();
  } finally {
    for (const { metadata, ...one } of items)
      await served.client.create(MUTATING_WEBHOOK_CONFIGURATIONS, { ...one, metadata: { name: metadata?.name ?? "" } });
  }
};
const explain = (name: string) => ["explain", name];

const SITUATIONS: readonly Situation[] = [
  {
    what: "a paused rollout continues after sidecarset resume",
    given: async (name) => {
      await released(name);
      await release(name, "agent:2", { paused: true });
    },
    asked: explain,
    command: /sidecarset resume \S+/,
    comesTrue: (name) => podsRun(name, "agent:2"),
  },
  {
    what: "pods that the partition holds back are updated after sidecarset promote",
    given: async (name) => {
      await released(name);
      await release(name, "agent:2", { partition: "100%" });
    },
    asked: explain,
    command: /sidecarset promote \S+/,
    comesTrue: (name) => podsRun(name, "agent:2"),
  },
  {
    what: "pods whose image cannot be pulled run the previous image after sidecarset undo",
    given: brokenRelease,
    asked: explain,
    command: /sidecarset undo [^\s,]+/,
    comesTrue: (name) => podsRun(name, "agent:1"),
  },
  {
    what: "a halted rollout goes back after sidecarset undo",
    given: async (name) => {
      await released(name);
      await change(name, { metadata: { annotations: { "sidecarset.kruise.io/halt-on": "0" } } });
      await release(name, "agent:does-not-exist");
      await vi.waitFor(async () => expect(await cli("explain", name)).toContain("RolloutHalted"), PATIENT);
    },
    asked: explain,
    command: /sidecarset undo [^\s,]+/,
    comesTrue: (name) => podsRun(name, "agent:1"),
  },
  {
    what: "pods whose image cannot be pulled run another image after sidecarset set image",
    given: brokenRelease,
    asked: (name) => ["explain", `deployment/${name}`, "-n", "shop"],
    command: /sidecarset set image \S+ agent=IMAGE/,
    comesTrue: (name) => podsRun(name, "agent:2"),
  },
  {
    what: "the abort of a complete rollout names the undo command that goes back",
    given: (name) => released(name, "agent:2"),
    asked: (name) => ["abort", name],
    command: /sidecarset undo \S+/,
    comesTrue: (name) => podsRun(name, "agent:1"),
  },
  {
    what: "undo --to-revision goes back to the named revision even if every other revision was abandoned",
    given: async (name) => {
      await released(name, "agent:2");
      await cli("undo", name);
      await settled(name, "agent:1");
    },
    asked: (name) => ["undo", name],
    command: /sidecarset undo \S+ --to-revision \d+/,
    comesTrue: (name) => podsRun(name, "agent:2"),
  },
  {
    what: "pods of a Deployment that is older than the SidecarSet have the sidecar after a restart",
    given: (name) => podsLack(name, "Deployment"),
    asked: explain,
    command: /kubectl -n shop rollout restart \S+/,
    comesTrue: (name) => podsRun(name, "agent:1"),
  },
  {
    what: "pods of a workload that kubectl cannot restart have the sidecar after they are deleted",
    given: (name) => podsLack(name, "ReplicaSet"),
    asked: explain,
    command: /kubectl -n shop delete pod \S+ \S+/,
    comesTrue: (name) => podsRun(name, "agent:1"),
  },
  {
    what: "a change without a hash is rolled out after the SidecarSet is written again",
    given: async (name) => {
      await released(name);
      await withoutWebhook(() => release(name, "agent:2"));
    },
    asked: () => ["check"],
    command: /kubectl annotate --overwrite sidecarset\s+\S+\s+sidecarset\.kruise\.io\/written=again/,
    comesTrue: (name) => podsRun(name, "agent:2"),
  },
  {
    what: "set image without a webhook names the command that starts the rollout of the change",
    given: (name) => released(name),
    asked: (name) => ["set", "image", name, "agent=agent:2"],
    command: /kubectl annotate --overwrite sidecarset \S+ sidecarset\.kruise\.io\/written=again/,
    comesTrue: (name) => podsRun(name, "agent:2"),
  },
  {
    what: "sidecarset abort takes a canary back",
    given: async (name) => {
      await released(name);
      await vi.waitFor(async () => {
        await cli("canary", name, "agent=agent:2", "--share", "50%");
        expect((await readSet(name)).spec.injectionStrategy?.revision).toBeDefined();
      }, PATIENT);
    },
    asked: (name) => ["canary", name, "agent=agent:3"],
    command: /sidecarset abort \S+/,
    comesTrue: async (name) => {
      await podsRun(name, "agent:1");
      expect((await readSet(name)).spec.injectionStrategy?.revision).toBeUndefined();
    },
  },
  {
    what: "sidecarset promote ends a canary",
    given: async (name) => {
      await released(name);
      await vi.waitFor(async () => {
        await cli("canary", name, "agent=agent:2", "--share", "50%");
        expect((await readSet(name)).spec.injectionStrategy?.revision).toBeDefined();
      }, PATIENT);
    },
    asked: (name) => ["canary", name, "agent=agent:3"],
    command: /sidecarset promote \S+/,
    comesTrue: async (name) => {
      await podsRun(name, "agent:2");
      expect((await readSet(name)).spec.injectionStrategy?.revision).toBeUndefined();
    },
  },
];

it.each(SITUATIONS.map((one, index) => ({ ...one, name: `advice-${index}` })))(
  "$what",
  async ({ name, given, asked, command, comesTrue }) => {
    await given(name);
    let found = "";
    const isUnasked = asked(name)[0] === "set";
    const ask = () =>
      vi.waitFor(async () => {
        const printed = await cli(...asked(name));
        found = command.exec(printed)?.[0].replaceAll(/\s+/g, " ") ?? "";
        expect([found === "", printed.includes(name), printed]).toEqual([false, true, printed]);
      }, PATIENT);
    await (isUnasked ? withoutWebhook(ask) : ask());
    await execute(found.replace("IMAGE", "agent:2"));
    await comesTrue(name);
  },
);

it("no undo is suggested if there is no revision to go back to", async () => {
  await createSet("alone", { containers: [{ name: "agent", image: "agent:does-not-exist" }] });
  await createPods("alone");
  await vi.waitFor(async () => expect(await cli("explain", "alone")).toContain("set another image"), PATIENT);
  expect(await cli("explain", "alone")).not.toContain("sidecarset undo");
  expect((await readSet("alone")).metadata?.annotations?.[HASH_ANNOTATION]).toBeDefined();
});
