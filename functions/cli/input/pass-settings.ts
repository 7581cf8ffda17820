/** With which feature gates passes decide: those that the last one ran with, for the environment here may be another. */

import { systemClock } from "../../../shared/controller/loop/clock.ts";
import { announcedSettings, readLease } from "../../../shared/controller/loop/lease.ts";
import { DEFAULT_ROLLOUT_SETTINGS, type RolloutSettings } from "../../../shared/core/rollout/rollout-settings.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import type { Cluster } from "../../../shared/kube/port.ts";
import { readConfig } from "../../../shared/settings/config.ts";
import type { Screen } from "../../terminal/screen.ts";

const GATES = Object.keys(DEFAULT_ROLLOUT_SETTINGS) as readonly (keyof RolloutSettings)[];

/** Where no pass has run, FEATURE_GATES: as one would run that was started here. What cannot be known is said. */
export async function readPassSettings(
  { kruiseNamespace, screen }: { readonly kruiseNamespace: string; readonly screen: Screen },
  cluster: Cluster,
): Promise<RolloutSettings> {
  const own = readConfig().featureGates;
  const site = { cluster, clock: systemClock, namespace: kruiseNamespace, over: new Set<string>() };
  const lease = await readLease(site).catch((error: unknown) => {
    if (isKubeError(error, 403)) return undefined;
    throw error;
  });
  if (lease && !lease.stored) return own;
  const announced = lease && announcedSettings(lease);
  if (announced === undefined) {
    screen.warn(
      "It is not known with which feature gates passes run: those of FEATURE_GATES here are taken for theirs.",
    );
    return own;
  }
  const others = GATES.filter((gate) => own[gate] && !announced[gate]);
  if (others.length > 0)
    screen.warn(
      `The last pass ran without ${others.join(", ")}, which FEATURE_GATES has here: it is told what passes do.`,
    );
  return announced;
}
