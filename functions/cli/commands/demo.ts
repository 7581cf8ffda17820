/** `demo`: the whole product on an embedded cluster. */

import { CliError } from "../../terminal/screen.ts";
import type { Command } from "../command.ts";

export const DEMO: Command = {
  name: "demo",
  group: "Try it and run it",
  summary: "the whole product on an embedded cluster, in a minute",
  arguments: [{ name: "[FILE...]", about: "more manifests, behind -f", completion: "file" }],
  options: [
    { flags: "--json", about: "the summary as one JSON object" },
    { flags: "--keep", about: "leave the cluster running, for kubectl and this command line" },
    { flags: "-f, --file <FILE>", about: "your manifests instead of the sample", isList: true },
  ],
  examples: ["sidecarset demo", "sidecarset demo --keep", "sidecarset demo -f log-agent.yaml web.yaml"],
  run: async (input) => {
    const files = input.list("file");
    const [first] = input.arguments;
    if (first !== undefined && files.length === 0)
      throw new CliError(`${first}: unexpected; write -f in front of manifest files`);
    const { runDemo } = await import("../../../infra/demo/demo.ts");
    await runDemo({ json: input.isSet("json"), keep: input.isSet("keep"), files: [...files, ...input.arguments] });
    return 0;
  },
};
