/**
 * Reads every state of pods from etcd. None is missing, even if an API server is killed before it writes its audit log.
 */
import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { fromProtobuf, MESSAGES } from "../../../infra/local/http/decode.ts";
import type { ApiObject } from "../../../infra/local/storage/json.ts";

export interface StoredVersion {
  /** the resourceVersion of this state */
  readonly sequence: number;
  readonly group: string;
  readonly resource: string;
  readonly object: ApiObject;
  readonly isRemoved: boolean;
}

/** The fields that rules need. Source: generated.proto of k8s.io/api and k8s.io/apimachinery. */
const STORED_PODS = {
  ...MESSAGES,
  ObjectMeta: { ...MESSAGES["ObjectMeta"], 5: ["uid", "text"] as const },
  Pod: { 1: ["metadata", "ObjectMeta"], 2: ["spec", "PodSpec"], 3: ["status", "PodStatus"] } as const,
  PodStatus: { 2: ["conditions", "PodCondition[]"], 8: ["containerStatuses", "ContainerStatus[]"] } as const,
  PodCondition: { 1: ["type", "text"], 2: ["status", "text"] } as const,
  ContainerStatus: { 1: ["name", "text"], 5: ["restartCount", "integer"], 6: ["image", "text"] } as const,
};

/** Source: etcd's JSON gateway; bytes are base64, 64-bit numbers are text. */
interface WatchAnswer {
  readonly error?: { readonly message: string };
  readonly result?: {
    readonly canceled?: boolean;
    readonly cancel_reason?: string;
    readonly compact_revision?: string;
    readonly events?: readonly {
      /** the kind of event; absent: PUT */
      readonly type?: "DELETE";
      readonly kv: { readonly key: string; readonly mod_revision: string; readonly value?: string };
    }[];
  };
}

type Event = NonNullable<NonNullable<WatchAnswer["result"]>["events"]>[number];

const base64 = (text: string) => Buffer.from(text).toString("base64");

function versionOf({ type, kv }: Event): StoredVersion {
  const key = Buffer.from(kv.key, "base64").toString();
  if (type === "DELETE") throw new Error(`${key} was deleted, and nobody was to do that`);
  const pod = fromProtobuf(Buffer.from(kv.value ?? "", "base64"), STORED_PODS);
  if (pod === undefined) throw new Error(`${key} holds no Pod in protobuf`);
  const metadata = { ...(pod["metadata"] as object), resourceVersion: kv.mod_revision };
  const object = { ...pod, metadata } as unknown as ApiObject;
  return { sequence: Number(kv.mod_revision), group: "", resource: "pods", object, isRemoved: false };
}

export interface Stretch {
  readonly namespace: string;
  /** resourceVersion before the first reported state */
  readonly after: number;
  /** resourceVersion of the last reported state, of a pod in the namespace */
  readonly until: number;
}

/** Returns versions, oldest first. @throws if etcd has forgotten some, or a pod was deleted */
export async function podVersions(etcdUrl: string, { namespace, after, until }: Stretch) {
  if (until <= after) return [];
  const prefix = `/registry/pods/${namespace}`;
  const range = { key: base64(`${prefix}/`), range_end: base64(`${prefix}0`) };
  const outgoing = request(`${etcdUrl}/v3/watch`, { method: "POST" });
  outgoing.end(JSON.stringify({ create_request: { ...range, start_revision: after + 1 } }));
  try {
    return await readUntil(outgoing, until);
  } finally {
    outgoing.destroy();
  }
}

async function* linesOf(answer: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = Buffer.alloc(0);
  for await (const chunk of answer) {
    const all = Buffer.concat([rest, chunk]);
    const end = all.lastIndexOf("\n") + 1;
    yield* all.toString("utf8", 0, end).split("\n").filter(Boolean);
    rest = all.subarray(end);
  }
}

async function readUntil(outgoing: ClientRequest, until: number): Promise<readonly StoredVersion[]> {
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  const versions: StoredVersion[] = [];
  for await (const line of linesOf(answer)) {
    const { result, error } = JSON.parse(line) as WatchAnswer;
    if (error || result?.canceled) throw new Error(`etcd: ${JSON.stringify(error ?? result)}`);
    versions.push(...(result?.events ?? []).map(versionOf));
    if ((versions.at(-1)?.sequence ?? 0) >= until) return versions;
  }
  throw new Error(`etcd ended its watch before revision ${until}`);
}
