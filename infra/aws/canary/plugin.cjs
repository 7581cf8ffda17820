/** A plugin of osls: adds the versions of the webhooks, once it knows their code and has finished the template. */
const { createHash } = require("node:crypto");
const { readFile } = require("node:fs/promises");
const { join } = require("node:path");

module.exports = class Canary {
  constructor(serverless) {
    this.hooks = {
      "after:aws:package:finalize:mergeCustomProviderResources": async () => {
        const { withVersions } = await import("./versions.ts");
        const { provider } = serverless.service;
        const naming = serverless.getProvider("aws").naming;
        const codeOf = new Map();
        for (const name of serverless.service.getAllFunctions()) {
          const zip = await readFile(join(serverless.serviceDir, ".serverless", naming.getFunctionArtifactName(name)));
          codeOf.set(name, createHash("sha256").update(zip).digest("base64"));
        }
        provider.compiledCloudFormationTemplate = withVersions(provider.compiledCloudFormationTemplate, codeOf);
      },
    };
  }
};
