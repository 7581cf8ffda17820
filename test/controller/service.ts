/** Services of a pass, for tests of one part of it. */
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { newPassMemory, type PassOptions } from "../../shared/controller/pass.ts";
import type { Service } from "../../shared/controller/rollout/service.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";

/** Returns the service of a pass that follows rollouts without an end. */
export function serviceOf(cluster: Cluster, more: Partial<Service> = {}): Service {
  return {
    cluster,
    lateCluster: cluster,
    clock: systemClock,
    kruiseNamespace: KRUISE_NAMESPACE,
    limits: { endsAtMs: Number.POSITIVE_INFINITY, lastsMs: 60_000 },
    isDryRun: false,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    gates: undefined,
    isKeepingRegistration: false,
    isFollowing: true,
    isRescanning: true,
    problems: [],
    notReached: [],
    unread: [],
    failing: new Map(),
    readings: new Map(),
    cursor: "",
    ...more,
  };
}

/** Returns the options of a pass that looks once, with an empty memory. */
export function oneLook(more: Partial<PassOptions> = {}): PassOptions {
  return {
    deadlineMs: 60_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: false,
    memory: newPassMemory(),
    ...more,
  };
}
