/**
 * VERSIONS and SAMPLE_LABELS: function versions to check, and the sample pod's labels; infra/aws/canary writes them.
 */
import { ConfigError } from "./config-error.ts";

export interface CheckedVersion {
  /** mutate-pod */
  readonly webhook: string;
  readonly functionName: string;
  /** a number */
  readonly version: string;
  readonly region: string;
}

const ENTRY = /^([a-z-]+)=arn:aws[a-z-]*:lambda:([a-z0-9-]+):\d{12}:function:([\w-]+):(\d+)$/;

/** `text`: WEBHOOK=ARN, with commas between them. @throws ConfigError */
export function parseCheckedVersions(text: string): readonly CheckedVersion[] {
  return text.split(",").map((entry) => {
    const [, webhook, region, functionName, version] = ENTRY.exec(entry) ?? [];
    if (webhook && region && functionName && version) return { webhook, functionName, version, region };
    throw new ConfigError(`VERSIONS has ${JSON.stringify(entry)}, which is not WEBHOOK=ARN of a version.`);
  });
}

/** `text`: NAME=VALUE, with commas between them. @throws ConfigError */
export function parseSampleLabels(what: string, text: string): Readonly<Record<string, string>> {
  const entries = text.split(",").filter(Boolean);
  return Object.fromEntries(
    entries.map((entry) => {
      const [, name, value = ""] = /^([\w./-]+)=([\w.-]*)$/.exec(entry) ?? [];
      if (name !== undefined) return [name, value];
      throw new ConfigError(
        `${what} has ${JSON.stringify(entry)}: write NAME=VALUE, several with commas between them.`,
      );
    }),
  );
}
