/** How an ordered set is named by hand: NAMESPACE/NAME. */
import { ConfigError } from "../shared/config-error.ts";
import type { SetKey } from "../shared/controller/ordered-set/set-look.ts";

/** @throws ConfigError for anything else */
export function parseSetKey(text: string): SetKey {
  const [namespace = "", name = "", ...rest] = text.split("/");
  if (namespace !== "" && name !== "" && rest.length === 0) return { namespace, name };
  throw new ConfigError(`${text} names no StatefulSet of apps.kruise.io: write NAMESPACE/NAME.`);
}
