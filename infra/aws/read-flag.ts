/** A parameter of the deployment that is on or off. */
import { ConfigError } from "../../shared/settings/config-error.ts";

/** @throws ConfigError */
export async function readFlag(name: string, read: (name: string) => Promise<string>): Promise<boolean> {
  const text = await read(name);
  if (text === "" || text === "false") return false;
  if (text === "true") return true;
  throw new ConfigError(`--param ${name}=${text} is neither true nor false.`);
}
