/** Parameters of the deployment, read by kind. */
import { ConfigError } from "../../shared/settings/config-error.ts";

/** One parameter's text; empty when it is not given. */
export type ReadParameter = (name: string) => Promise<string>;

/** @throws ConfigError */
export async function readFlag(name: string, read: ReadParameter, otherwise = false): Promise<boolean> {
  const text = await read(name);
  if (text === "") return otherwise;
  if (text === "false" || text === "true") return text === "true";
  throw new ConfigError(`--param ${name}=${text} is neither true nor false.`);
}

/** Ids of the VPC, with commas between them. `kind`: their prefix. @throws ConfigError */
export async function readIds(name: string, kind: "subnet" | "sg", read: ReadParameter): Promise<readonly string[]> {
  const ids = (await read(name)).split(",").flatMap((entry) => entry.trim() || []);
  const odd = ids.find((id) => !id.startsWith(`${kind}-`));
  if (odd === undefined) return ids;
  throw new ConfigError(`--param ${name}: ${odd} is no id: write ${kind}-…, with commas between them.`);
}

/** Refuses repeated names, of which only the last would count. @throws ConfigError */
export function refuseRepeated(names: readonly string[]): void {
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice === undefined) return;
  throw new ConfigError(
    `--param ${twice} is given more than once: write it once; lists have commas between their values.`,
  );
}
