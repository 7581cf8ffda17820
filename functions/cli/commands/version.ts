/** `version`: this program's, and the cluster's components'. */
import manifest from "../../../package.json" with { type: "json" };
import { readServerFacts } from "../../../shared/kube/port.ts";
import type { Command } from "../command.ts";

export const VERSION: Command = {
  name: "version",
  group: "Install it",
  summary: "of this program, and of the API server that it asks",
  options: [{ flags: "--client", about: "of this program alone; no cluster is asked" }],
  outputs: ["table", "json", "yaml"],
  examples: ["sidecarset version", "sidecarset version --client"],
  run: async (input, session) => {
    const client = manifest.version;
    if (input.isSet("client")) {
      session.print({ client }, (screen) => screen.line(`sidecarset ${client}`));
      return 0;
    }
    const { version } = await readServerFacts(await session.access(), Date.now);
    session.print({ client, server: version.gitVersion }, (screen) => {
      screen.line(`sidecarset ${client}`);
      screen.line(`API server ${version.gitVersion}`);
    });
    return 0;
  },
};
