/** A plugin of osls: adds the versions of the webhooks to the finished template, and checks the account before it is sent. */
const { createHash } = require("node:crypto");
const { readFile } = require("node:fs/promises");
const { join } = require("node:path");

module.exports = class Canary {
  constructor(serverless) {
    this.hooks = {
      "before:aws:deploy:deploy:createStack": async () => {
        const { requireConcurrency } = await import("../clusters-settings.ts");
        const { openAws } = await import("../deploy/aws.ts");
        const { readEnvironment } = await import("../../../shared/settings/config.ts");
        const endpoint = readEnvironment().AWS_ENDPOINT_URL || undefined;
        const provider = serverless.getProvider("aws");
        const aws = openAws(provider.getRegion(), endpoint, provider.getProfile());
        // Who may not ask learns it from the alarms.
        const most = await aws.getUnreservedConcurrency().catch(() => undefined);
        try {
          requireConcurrency(serverless.service.provider.compiledCloudFormationTemplate.Resources, most);
        } catch (error) {
          error.stack = error.message;
          throw error;
        }
      },
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
