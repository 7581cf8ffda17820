/** Tests what the webhooks of ContainerRecreateRequests, ordered sets and SidecarSets read. */
import { describe, expect, test } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import { KubeError } from "../../shared/kube/error.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { readConfig } from "../../shared/settings/config.ts";
import {
  containerRecreateAdmission,
  sidecarSetValidation,
  statefulSetValidation,
} from "../../shared/webhook/handlers/validation.ts";
import type { ClusterView } from "../../shared/webhook/view/cluster-view.ts";
import { setOf } from "../core/ordered-set/fixture.ts";
import { sidecarSet } from "../core/validate/fixture.ts";

type Stored = Readonly<Record<string, object | number>>;

/** Returns a cluster that answers with the stored object, or with an error of the stored code. */
function clusterOf(stored: Stored) {
  const asked: string[] = [];
  const answer = async (key: string) => {
    asked.push(key);
    const found = stored[key] ?? 404;
    if (typeof found === "number") throw new KubeError(key, { code: found, reason: "Unknown" });
    return found;
  };
  const cluster = {
    get: ({ plural }: { plural: string }, { namespace, name }: { namespace?: string; name: string }) =>
      answer([plural, namespace, name].filter(Boolean).join("/")),
    list: ({ plural }: { plural: string }) => answer(plural),
  } as unknown as Cluster;
  return { asked, connect: async () => cluster };
}

function requestOf(operation: AdmissionRequest["operation"], object: object): AdmissionRequest {
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "any" };
  const kind = { group: "apps.kruise.io", version: "v1beta1", kind: "Any" };
  return { uid: "u", operation, kind, resource, namespace: "shop", object, oldObject: object } as AdmissionRequest;
}

const gates = (text: string) => readConfig({ FEATURE_GATES: text }).featureGates;

describe("containerRecreateAdmission:", () => {
  const POD = "pods/shop/web";
  const wish = {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "ContainerRecreateRequest",
    metadata: { name: "a", namespace: "shop" },
    spec: { podName: "web", containers: [{ name: "main" }] },
  };
  const podOn = (nodeName?: string) => ({
    metadata: { name: "web", namespace: "shop", uid: "u" },
    spec: { containers: [{ name: "main", image: "a:1" }], ...(nodeName ? { nodeName } : {}) },
    status: { phase: "Running", containerStatuses: [{ name: "main", containerID: "c" }] },
  });
  const decided = async (stored: Stored, features = "KruiseDaemon=true", request = requestOf("CREATE", wish)) => {
    const { asked, connect } = clusterOf(stored);
    const admission = await containerRecreateAdmission({ connect, featureGates: gates(features) })(request);
    return { asked, admission };
  };

  test("a ContainerRecreateRequest needs its pod and the pod's node", async () => {
    const { asked, admission } = await decided({ [POD]: podOn("n1"), "nodes/n1": { metadata: { name: "n1" } } });
    expect(asked).toEqual([POD, "nodes/n1"]);
    expect(admission.kind).toBe("allowed");
  });

  test("a ContainerRecreateRequest needs only its pod when the pod has no node", async () => {
    expect((await decided({ [POD]: podOn() })).asked).toEqual([POD]);
  });

  test("a ContainerRecreateRequest for a missing pod is refused after one read", async () => {
    const { asked, admission } = await decided({});
    expect([asked, admission.kind]).toEqual([[POD], "denied"]);
  });

  test("an update, or a request without the gate KruiseDaemon, reads nothing", async () => {
    expect((await decided({ [POD]: podOn("n1") }, "KruiseDaemon=false")).asked).toEqual([]);
    const update = requestOf("UPDATE", wish);
    expect((await decided({ [POD]: podOn("n1") }, "KruiseDaemon=true", update)).asked).toEqual([]);
  });

  test("a missing node is no error, and a pod or node that cannot be read is an error", async () => {
    expect((await decided({ [POD]: podOn("n1") })).asked).toEqual([POD, "nodes/n1"]);
    await expect(decided({ [POD]: 503 })).rejects.toMatchObject({ code: 503 });
    await expect(decided({ [POD]: podOn("n1"), "nodes/n1": 403 })).rejects.toMatchObject({ code: 403 });
  });
});

describe("statefulSetValidation:", () => {
  const askedBy = async (operation: AdmissionRequest["operation"], features: string) => {
    const { asked, connect } = clusterOf({ storageclasses: { items: [] } });
    await statefulSetValidation({ connect, featureGates: gates(features) })(requestOf(operation, {}));
    return asked;
  };

  test("StorageClasses are read only for updates with the gate StatefulSetAutoResizePVCGate", async () => {
    expect(await askedBy("UPDATE", "StatefulSetAutoResizePVCGate=true")).toEqual(["storageclasses"]);
    expect(await askedBy("UPDATE", "StatefulSetAutoResizePVCGate=false")).toEqual([]);
    expect(await askedBy("CREATE", "StatefulSetAutoResizePVCGate=true")).toEqual([]);
  });

  test("a claim may grow only when its StorageClass allows it", async () => {
    const claim = (storage: string) => ({
      metadata: { name: "data" },
      spec: { storageClassName: "fast", accessModes: ["ReadWriteOnce"], resources: { requests: { storage } } },
    });
    const rollingUpdate = { partition: 0, maxUnavailable: 1, minReadySeconds: 0, podUpdatePolicy: "ReCreate" };
    const set = (storage: string) => {
      const { metadata, ...rest } = setOf({
        volumeClaimTemplates: [claim(storage)],
        volumeClaimUpdateStrategy: { type: "OnPodRollingUpdate" },
        updateStrategy: { type: "RollingUpdate", rollingUpdate },
      });
      return { ...rest, metadata: { ...metadata, resourceVersion: "1" } };
    };
    const grown = { ...requestOf("UPDATE", set("2Gi")), oldObject: set("1Gi") as never };
    const kindBy = async (allowVolumeExpansion: boolean) => {
      const { connect } = clusterOf({
        storageclasses: { items: [{ metadata: { name: "fast" }, allowVolumeExpansion }] },
      });
      const featureGates = gates("StatefulSetAutoResizePVCGate=true");
      return (await statefulSetValidation({ connect, featureGates })(grown)).kind;
    };
    expect([await kindBy(true), await kindBy(false)]).toEqual(["allowed", "denied"]);
  });

  test("the author of a set that is too large for passes gets a warning", async () => {
    const { connect } = clusterOf({});
    const warningsOf = async (replicas: number) => {
      const { metadata, ...rest } = setOf({ replicas, updateStrategy: { type: "RollingUpdate" } });
      const set = { ...rest, metadata: { ...metadata, resourceVersion: "1" } };
      const admission = await statefulSetValidation({ connect, featureGates: gates("") })(requestOf("CREATE", set));
      return [admission.kind, "warnings" in admission ? admission.warnings : undefined];
    };
    const words =
      "spec.replicas: 20001 is more than 20000, and passes make, update and delete no pod of the set: lower it";
    expect([await warningsOf(20_001), await warningsOf(20_000)]).toEqual([
      ["allowed", [words]],
      ["allowed", undefined],
    ]);
  });

  test("validation fails when StorageClasses cannot be read", async () => {
    const { connect } = clusterOf({ storageclasses: 503 });
    const featureGates = gates("StatefulSetAutoResizePVCGate=true");
    const validate = statefulSetValidation({ connect, featureGates });
    await expect(validate(requestOf("UPDATE", {}))).rejects.toMatchObject({ code: 503 });
  });
});

describe("sidecarSetValidation:", () => {
  const { featureGates, kruiseNamespace } = readConfig({});
  async function decided(spec: Parameters<typeof sidecarSet>[0], metadata: object = { name: "logs" }) {
    const asked: object[] = [];
    const list = {
      metadata: { name: "kruise-configuration", namespace: kruiseNamespace },
      data: { SidecarSet_PatchPodMetadata_WhiteList: '{"rules":[{"allowedAnnotationKeyExprs":["^a$"]}]}' },
    };
    const view = {
      listSidecarSets: () => ({ value: { sidecarSets: [] } }),
      findRevisions: (wanted: object) => {
        asked.push(wanted);
        return { value: [] };
      },
      getConfigMap: (name: string) => {
        asked.push({ name });
        return { value: list };
      },
    } as unknown as ClusterView;
    const object = { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", ...sidecarSet(spec), metadata };
    const admission = await sidecarSetValidation({ view, featureGates, kruiseNamespace })(requestOf("CREATE", object));
    return { asked, admission };
  }

  test.each([
    ["a", "allowed"],
    ["b", "denied"],
  ])("the whitelist is read for a SidecarSet that patches pods: annotation %s is %s", async (key, kind) => {
    const { asked, admission } = await decided({
      patchPodMetadata: [{ annotations: { [key]: "v" }, patchPolicy: "Retain" }],
    });
    expect([asked, admission.kind]).toEqual([[{ name: "kruise-configuration" }], kind]);
  });

  test.each([
    ["the SidecarSet's name", { name: "logs" }, "logs"],
    ["an empty name when the SidecarSet has no name yet", {}, ""],
  ])("the pinned revision is looked up by %s", async (_, metadata, name) => {
    const { asked } = await decided({ injectionStrategy: { revision: { revisionName: "logs-1" } } }, metadata);
    expect(asked).toEqual([{ sidecarSet: name, revisionName: "logs-1" }]);
  });

  test("validation reads nothing for a plain SidecarSet", async () => {
    expect((await decided({})).asked).toEqual([]);
  });
});
