/**
 * A rollout in the middle, as a cluster shows it: pods on nodes and in namespaces, updated in batches, some of them
 * failing.
 */

import type { ControllerRevision, Pod } from "../../shared/api/kubernetes.ts";
import {
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
  WAVES_ANNOTATION,
} from "../../shared/api/names.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";
import type { ReportSubject } from "../../shared/core/inspect/report/report.ts";
import type { EventObject } from "../../shared/core/inspect/report/rows.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { injectedBy, listedPod } from "../support/objects.ts";
import { UNTOUCHED } from "../support/rollout-fixture.ts";

export const NOW = "2026-03-02T10:20:00Z";
export const CONTEXT = { now: NOW, kruiseNamespace: "kruise-system", settings: DEFAULT_ROLLOUT_SETTINGS };
const MINUTE_AGO = "2026-03-02T10:19:00Z";
const RELEASED = Date.parse("2026-03-02T10:00:00Z");

export interface Story {
  readonly name?: string;
  readonly pods: number;
  /** number of updated pods, in batches of `batch` */
  readonly updated: number;
  readonly batch: number;
  /** the last updated pods, which are not ready, with the reason */
  readonly failing?: number;
  readonly reason?: string;
  /** number of old pods that only a new pod can update */
  readonly fixed?: number;
  readonly namespaces?: readonly string[];
  readonly nodes?: number;
  readonly strategy?: UpdateStrategy;
  /** waves of the namespaces with their names; the first is complete since a minute ago; absent: none */
  readonly waves?: readonly { readonly name: string; readonly soakSeconds?: number; readonly paused?: boolean }[];
  /** text that is put into every text which a cluster's objects can hold */
  readonly hostile?: string;
}

const imageOf = (version: number) => `registry.example/fluent-bit:4.1.${version}`;

const CREATED = "2026-02-01T08:00:00Z";

const timeOf = (seconds: number) => new Date(RELEASED + seconds * 1000).toISOString().replace(".000Z", "Z");

/** Returns what one pass reads in such a rollout. */
export function rolloutOf(story: Story): ReportSubject {
  const sidecarSet = sidecarSetOf(story);
  const pods = Array.from({ length: story.pods }, (_, index) => podOf(story, index));
  const namespaceLabels = new Map((story.waves ?? []).map(({ name }) => [name, { stage: name }]));
  const observation = { sidecarSet, pods, revisions: revisionsOf(story), ...UNTOUCHED, namespaceLabels };
  return { observation, events: eventsOf(story), missed: new Set(), lastPass: NOW };
}

function sidecarSetOf({
  name = "log-agent",
  strategy = { partition: 0, maxUnavailable: "10%" },
  hostile,
  waves,
}: Story): SidecarSet {
  return {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: {
      name,
      uid: "uid-set",
      generation: 7,
      creationTimestamp: "2026-01-01T00:00:00Z",
      annotations: { [HASH_ANNOTATION]: "hash2", [HASH_WITHOUT_IMAGE_ANNOTATION]: "same", ...askedFor(waves) },
    },
    spec: {
      selector: { matchLabels: { logs: "yes" } },
      containers: [{ name: "fluent-bit", image: imageOf(2) + (hostile ?? "") }],
      updateStrategy: { type: "RollingUpdate", ...strategy },
      ...(hostile === undefined ? {} : { customVersion: hostile }),
    },
    status: { observedGeneration: 7, matchedPods: 20, updatedPods: 4, readyPods: 16, ...toldOf(waves) },
  };
}

function askedFor(waves: Story["waves"]) {
  const list = waves?.map((wave) => ({ ...wave, namespaceSelector: { matchLabels: { stage: wave.name } } }));
  return list === undefined ? {} : { [WAVES_ANNOTATION]: JSON.stringify(list) };
}

function toldOf(waves: Story["waves"]): Pick<NonNullable<SidecarSet["status"]>, "waves"> {
  const counts = { pods: 0, updated: 0, updatedReady: 0 };
  const list = waves?.map(({ name }, at) => ({ name, ...counts, ...(at === 0 ? { completeSince: MINUTE_AGO } : {}) }));
  return list === undefined ? {} : { waves: { revision: "hash2", list } };
}

function podOf(story: Story, index: number): Pod {
  const { hostile = "", nodes = 6, namespaces = ["shop", "billing", "search"] } = story;
  const isUpdated = index < story.updated;
  const isFailing = isUpdated && index >= story.updated - (story.failing ?? 0);
  return listedPod(
    {
      namespace: (namespaces[index % namespaces.length] ?? "shop") + hostile,
      name: `web-6d4cf56db6-${index.toString(36).padStart(5, "x")}${hostile}`,
      uid: `uid-${index}`,
      resourceVersion: `${1000 + index}`,
      creationTimestamp: CREATED,
      labels: { logs: "yes" },
      annotations: annotationsOf(story, index),
    },
    {
      nodeName: `node-${String((index * 7) % nodes).padStart(3, "0")}${hostile}`,
      containers: [
        { name: "web", image: "registry.example/web:9" },
        { name: "fluent-bit", image: imageOf(isUpdated ? 2 : 1) },
      ],
    },
    statusOf(story, imageOf(isUpdated ? 2 : 1), isFailing),
  );
}

function annotationsOf(story: Story, index: number) {
  const { name: set = "log-agent", updated, fixed = 0, pods, batch } = story;
  const isUpdated = index < updated;
  const at = isUpdated ? timeOf(30 + Math.floor(index / batch) * 90) : CREATED;
  const hash = isUpdated ? "hash2" : "hash1";
  const withoutImage = index >= pods - fixed ? "other" : "same";
  const state = { revision: "hash2", updateTimestamp: at, lastContainerStatuses: { "fluent-bit": { imageID: "old" } } };
  return {
    ...injectedBy(set, { hash, withoutImage, sidecars: ["fluent-bit"], at }),
    ...(isUpdated ? { [IN_PLACE_UPDATE_STATE_ANNOTATION]: JSON.stringify({ [set]: state }) } : {}),
  };
}

function statusOf({ reason = "ImagePullBackOff", hostile = "" }: Story, image: string, isFailing: boolean) {
  const state = isFailing ? { state: { waiting: { reason: reason + hostile } } } : {};
  return {
    phase: "Running",
    conditions: [{ type: "Ready", status: isFailing ? "False" : "True" }],
    containerStatuses: [
      { name: "web", ready: true, image: "registry.example/web:9", imageID: "web@9" },
      { name: "fluent-bit", ready: !isFailing, image, imageID: `${image}@id`, ...state },
    ],
  };
}

function revisionsOf({ name = "log-agent", hostile = "" }: Story): readonly ControllerRevision[] {
  return [1, 2].map((version) => ({
    metadata: {
      name: `${name}-6f9b5c7${version}${hostile}`,
      namespace: "kruise-system",
      ownerReferences: [
        { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", name, uid: "uid-set", controller: true },
      ],
      creationTimestamp: version === 1 ? "2026-01-01T00:00:01Z" : timeOf(0),
      annotations: { [HASH_ANNOTATION]: `hash${version}`, [HASH_WITHOUT_IMAGE_ANNOTATION]: "same" },
      labels: hostile === "" ? {} : { "apps.kruise.io/sidecarset-custom-version": hostile },
    },
    revision: version,
    data: { spec: { containers: [{ name: `fluent-bit${hostile}`, image: imageOf(version) + hostile }] } },
  }));
}

function eventsOf({ name = "log-agent", hostile = "" }: Story): readonly EventObject[] {
  return [
    {
      metadata: { name: "one", namespace: "default" },
      type: "Warning",
      reason: `NotUpgradablePods${hostile}`,
      message: `SidecarSet in-place update detected 3 not upgradable pod(s) in this round, will skip them.${hostile}`,
      count: 4,
      firstTimestamp: timeOf(10),
      lastTimestamp: timeOf(60),
      involvedObject: { kind: "SidecarSet", name: name + hostile },
    },
  ];
}
