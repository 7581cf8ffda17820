/** How an Advanced StatefulSet is named by hand: NAMESPACE/NAME. */

import type { SetKey } from "../../../shared/controller/statefulset/observe.ts";
import { ConfigError } from "../../../shared/settings/config-error.ts";

/** @throws ConfigError for anything else */
export function parseSetKey(text: string): SetKey {
  const [namespace = "", name = "", ...rest] = text.split("/");
  if (namespace !== "" && name !== "" && rest.length === 0) return { namespace, name };
  throw new ConfigError(`${text} names no StatefulSet of apps.kruise.io: write NAMESPACE/NAME.`);
}
