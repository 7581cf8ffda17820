/** Behaviour that clients expect of every API server. Each case has a sentence, and runs on any cluster. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, CONFIG_MAPS, NAMESPACES, PODS } from "../../shared/kube/port.ts";
import { type RawAnswer, type RawRequest, type RawTarget, sendRaw } from "./raw.ts";

/** Capabilities that some clusters lack. */
interface Capabilities {
  /** minor version, such as 33 for Kubernetes 1.33 */
  readonly minor: number;
  /** makes the API server forget old resourceVersions; absent: impossible */
  readonly compact?: () => Promise<void>;
  /** true if something schedules and runs pods */
  readonly runsPods: boolean;
  /** true if nodes report every state; a real kubelet skips a state that ends before its next sync */
  readonly showsEveryState: boolean;
  /** true if something deletes objects without owners, and empties deleted namespaces */
  readonly collectsGarbage: boolean;
  /** address under which the API server reaches this machine; absent: 127.0.0.1 */
  readonly webhookHost?: string;
}

export interface ContractTarget extends Capabilities {
  readonly cluster: Cluster;
  readonly access: RawTarget;
  close(): Promise<void>;
}

export interface Context extends ContractTarget {
  /** a namespace for this case alone */
  readonly namespace: string;
  /** Sends requests for which the client has no call: "/api/v1/…" with any method, headers and body. */
  raw(request: RawRequest): Promise<RawAnswer>;
  /** Returns the result of `make` from the first case that calls it. All cases of the subject share it. */
  shared<T extends Closable>(make: (context: Context) => Promise<T>): Promise<T>;
}

interface Closable {
  close(): Promise<void>;
}

export interface ContractCase {
  readonly sentence: string;
  /** first minor version with this behaviour by default, such as 33 for Kubernetes 1.33 */
  readonly from?: number;
  readonly needs?: "compact" | "runsPods" | "showsEveryState" | "collectsGarbage";
  run(context: Context): Promise<void>;
}

/** Declares the cases as tests. A case is skipped if the cluster lacks a capability that it needs. */
export function describeContract(
  cluster: string,
  open: () => Promise<ContractTarget>,
  subjects: Readonly<Record<string, readonly ContractCase[]>>,
): void {
  describe.each(Object.entries(subjects))(`${cluster}: %s:`, (_subject, cases) => {
    let target: ContractTarget;
    const made = new Map<unknown, Promise<Closable>>();
    beforeAll(async () => {
      target = await open();
    });
    afterAll(async () => {
      for (const one of made.values()) await (await one).close();
      await target.close();
    });
    it.for(cases.map((one) => [one.sentence, one] as const))("%s", async ([, one], { skip }) => {
      if (target.minor < (one.from ?? 0)) skip(`Kubernetes 1.${target.minor} does not serve it`);
      if (one.needs !== undefined && !target[one.needs]) skip(`this cluster lacks ${one.needs}`);
      const namespace = `contract-${randomBytes(4).toString("hex")}`;
      await target.cluster.create(NAMESPACES, { metadata: { name: namespace } });
      const context: Context = {
        ...target,
        namespace,
        raw: (request) => sendRaw(target.access, request),
        shared<T extends Closable>(make: (context: Context) => Promise<T>) {
          const known = made.get(make) ?? make(context);
          made.set(make, known);
          return known as Promise<T>;
        },
      };
      await one.run(context);
    });
  });
}

export interface Refusal {
  readonly code: number;
  readonly reason?: string;
  readonly message?: string | RegExp;
}

/** Expects that the promise rejects with such a KubeError. */
export async function refused(promise: Promise<unknown>, refusal: Refusal): Promise<KubeError> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if (!("error" in outcome)) throw new Error(`expected ${refusal.code}, got ${JSON.stringify(outcome.value)}`);
  const error = outcome.error;
  if (!(error instanceof KubeError)) throw error;
  expect({ code: error.code, message: error.message }).toMatchObject({ code: refusal.code });
  if (refusal.reason !== undefined) expect(error.reason).toBe(refusal.reason);
  if (refusal.message !== undefined) expect(error.message).toMatch(refusal.message);
  return error;
}

export interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** Creates a ConfigMap in the case's namespace. */
export function createMap(
  { cluster, namespace }: Context,
  name: string,
  rest: { metadata?: object; data?: object } = {},
): Promise<ConfigMap> {
  const { metadata, ...fields } = rest;
  return cluster.create<ConfigMap>(CONFIG_MAPS, { metadata: { name, namespace, ...metadata }, ...fields } as ConfigMap);
}

export interface TestPod extends KubernetesObject {
  readonly spec: { readonly containers: readonly Record<string, unknown>[]; readonly [field: string]: unknown };
  readonly status?: Readonly<Record<string, unknown>>;
}

/** Creates a pod for no scheduler, so that only the case changes it. */
export function createPod(
  { cluster, namespace }: Context,
  name: string,
  rest: Partial<TestPod> = {},
): Promise<TestPod> {
  const spec = { schedulerName: "nobody", containers: [{ name: "main", image: "nginx:1.25" }], ...rest.spec };
  const metadata = { name, namespace, ...rest.metadata };
  return cluster.create<TestPod>(PODS, { ...rest, metadata, spec });
}

export function versionOf(object: KubernetesObject): string {
  return object.metadata?.resourceVersion ?? "";
}
