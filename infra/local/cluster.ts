/** A whole Kubernetes cluster in this process, served over real HTTPS on 127.0.0.1. */
import { randomBytes } from "node:crypto";
import { runDeploymentController, runReplicaSetController } from "./controllers/deployment-controller.ts";
import { runGarbageCollector, runNamespaceController, trackOwnership } from "./controllers/garbage-collector.ts";
import { runScheduler } from "./controllers/scheduler.ts";
import { runStatefulSetController } from "./controllers/stateful-set-controller.ts";
import type { Controller } from "./controllers/work-queue.ts";
import { type Answer, type ApiRequest, errorAnswer, type Front } from "./http/http-message.ts";
import { type Access, createCertificates, kubeconfigText, serveHttps } from "./http/https-server.ts";
import { handle } from "./http/request-handler.ts";
import { CUSTOM_RESOURCE_DEFINITION, createRegistry, kindsOf, NAMESPACE, NODE } from "./kinds/registry.ts";
import { nodeObject, runKubelet } from "./kubelet/kubelet.ts";
import { type ImageBehaviour, imageBehaviour, type KubeletSettings } from "./kubelet/kubelet-settings.ts";
import { type Api, type Clock, component, internalCall, systemClock, type User } from "./storage/api.ts";
import { keyOf, timestamp } from "./storage/json.ts";
import { type Change, createHistory, type RecordedAdmission, type RecordedWrite, Store } from "./storage/store.ts";
import { commitRemoval, createObject } from "./storage/write.ts";

export interface LocalClusterOptions {
  /** default: a free one */
  readonly port?: number;
  /** default 3 */
  readonly nodes?: number;
  /** The least number of latest writes in history(); each keeps its object. Default: all. */
  readonly recordedWrites?: number;
  /** default 60 s, as in kube-apiserver */
  readonly bookmarkIntervalMs?: number;
  /** Time from the wish for a container until it runs; default 100. */
  readonly startDelayMs?: number;
  /** Time from a container's start until it is ready; default 100. */
  readonly readyDelayMs?: number;
  /** Time from a pod's deletion until it is gone; default 50. */
  readonly terminationDelayMs?: number;
  /** default: by its tag, see image.ts */
  readonly imageBehaviour?: (image: string) => ImageBehaviour;
  /** answers requests first; default: nobody */
  readonly front?: Front;
  /** a number in [0, 1); default Math.random */
  readonly random?: () => number;
}

/** The cluster without its HTTPS listener. */
export interface LocalApi {
  /** Answers a request as the administrator. Never rejects. */
  answer(request: ApiRequest): Promise<Answer>;
  /** Every write since the start, or the latest (`recordedWrites`), oldest first. */
  history(): readonly RecordedWrite[];
  /** Every call of an admission webhook since the start, oldest first. */
  admissions(): readonly RecordedAdmission[];
  /** "LIST pods" → how often, over HTTPS, by user agents that begin with the prefix. */
  apiCalls(userAgentPrefix?: string): Record<string, number>;
  /** Forgets old changes, as etcd's compaction does: older continue tokens and watches get 410. */
  compact(): void;
  close(): Promise<void>;
}

export interface LocalCluster extends Omit<LocalApi, "answer">, Access {
  /** YAML text */
  kubeconfig(): string;
}

const ADMINISTRATOR: User = {
  username: "kubernetes-admin",
  groups: ["kubeadm:cluster-admins", "system:authenticated"],
};
/** The most changes that watches and pages may lag behind. */
const CHANGES_KNOWN = 50_000;
const NAMESPACES = ["default", "kube-node-lease", "kube-public", "kube-system"];

async function furnish(api: Api, nodes: number): Promise<void> {
  const caller = component("kube-controller-manager");
  for (const name of NAMESPACES) {
    await createObject(api, internalCall(caller, NAMESPACE, { namespace: "", name }), { metadata: { name } });
  }
  for (let index = 1; index <= nodes; index += 1) {
    const node = nodeObject(index, timestamp(api.clock.now()));
    await createObject(api, internalCall(caller, NODE, { namespace: "", name: `node-${index}` }), node);
  }
}

function kubeletSettings(clock: Clock, options: LocalClusterOptions): KubeletSettings {
  return {
    clock,
    startDelayMs: options.startDelayMs ?? 100,
    readyDelayMs: options.readyDelayMs ?? 100,
    terminationDelayMs: options.terminationDelayMs ?? 50,
    imageBehaviour: options.imageBehaviour ?? imageBehaviour,
  };
}

/** Runs the cluster in this process alone, without a socket. Call `close` when done: it leaves no timer behind. */
export async function startLocalApi(options: LocalClusterOptions = {}): Promise<LocalApi> {
  const { api, close, ...rest } = await startApi(options, "no certificate: there is no listener");
  const settings = { bookmarkIntervalMs: options.bookmarkIntervalMs ?? 60_000 };
  return {
    ...rest,
    answer: (request) =>
      handle(api, request, { user: ADMINISTRATOR, userAgent: request.userAgent }, settings).catch(errorAnswer),
    close,
  };
}

/** Resolves when the cluster answers. Call `close` when done: it leaves no timer and no socket behind. */
export async function startLocalCluster(options: LocalClusterOptions = {}): Promise<LocalCluster> {
  const certificates = await createCertificates();
  const { api, close, ...rest } = await startApi(options, certificates.authority);
  const token = randomBytes(16).toString("hex");
  const server = await serveHttps(api, {
    port: options.port ?? 0,
    certificates,
    users: new Map([[token, ADMINISTRATOR]]),
    bookmarkIntervalMs: options.bookmarkIntervalMs ?? 60_000,
    front: options.front ?? ((request, ask) => ask(request)),
  });
  const access: Access = { url: `https://127.0.0.1:${server.port}`, caCertificate: certificates.authority, token };
  return {
    ...access,
    ...rest,
    kubeconfig: () => kubeconfigText(access),
    async close() {
      api.clock.close();
      await server.close();
      await close();
    },
  };
}

async function startApi(options: LocalClusterOptions, authority: string) {
  const clock = systemClock();
  const store = new Store(CHANGES_KNOWN);
  const history = createHistory(clock.now, options.recordedWrites);
  const api: Api = { store, registry: createRegistry(store), history, clock, random: options.random ?? Math.random };
  const controlPlane = runControlPlane(api, kubeletSettings(clock, options), authority);
  await furnish(api, options.nodes ?? 3);
  return {
    api,
    history: history.writes,
    admissions: history.admissions,
    apiCalls: (prefix = "") => history.calls(prefix),
    compact: () => store.compact(),
    async close() {
      clock.close();
      await controlPlane.close();
    },
  };
}

// Everything that works on the store without requests: controllers, scheduler, kubelets.

/** Starts the controllers; to be called before the first object is written. */
function runControlPlane(api: Api, kubelet: KubeletSettings, caCertificate: string): Controller {
  const ownership = trackOwnership(api.store);
  const controllers: readonly Controller[] = [
    runNamespaceController(api, caCertificate),
    runDefinitionController(api),
    runScheduler(api),
    runKubelet(api, kubelet),
    runReplicaSetController(api, ownership),
    runDeploymentController(api, ownership),
    runStatefulSetController(api, ownership),
    runGarbageCollector(api, ownership),
  ];
  return {
    async close() {
      await Promise.all(controllers.map((controller) => controller.close()));
    },
  };
}

/** Deletes the objects of a deleted CustomResourceDefinition. */
const CALLER = component("apiextensions-apiserver");

function runDefinitionController(api: Api): Controller {
  const unsubscribe = api.store.subscribe((change: Change) => {
    if (change.collection !== CUSTOM_RESOURCE_DEFINITION.collection || change.type !== "DELETED") return;
    const [kind] = kindsOf(change.object);
    if (kind === undefined) return;
    for (const object of api.store.list(kind.collection)) {
      commitRemoval(api, internalCall(CALLER, kind, keyOf(object)), "delete", object);
    }
  });
  return { close: async () => unsubscribe() };
}
