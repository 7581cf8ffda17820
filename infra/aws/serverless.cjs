/** What serverless.yml reads with ${file(infra/aws/serverless.cjs):…}: osls requires CommonJS. */

function reader({ resolveVariable }) {
  return async (name) => String((await resolveVariable(`param:${name}, null`)) ?? "");
}

async function settingsOf(tools) {
  const { readSettings } = await import("./settings.ts");
  const { checkNames } = await import("./deploy/parameters.ts");
  const stage = (await tools.resolveVariable("opt:stage, null")) ?? "prod";
  const [names, read] = [new Set(), reader(tools)];
  const settings = await readSettings("sidecarset", stage, (name) => {
    names.add(name);
    return read(name);
  });
  checkNames(process.argv, names);
  return settings;
}

/** The variables that all functions have, as serverless.yml writes them, and the region. */
async function commonOf({ resolveVariable }) {
  const read = async (name, otherwise) => String((await resolveVariable(`param:${name}, null`)) ?? otherwise);
  return {
    AWS_REGION: (await resolveVariable("opt:region, null")) ?? "eu-central-1",
    POD_NAMESPACE: await read("namespace", "kruise-system"),
    FEATURE_GATES: await read("feature-gates", ""),
    LOG_LEVEL: await read("log-level", "info"),
  };
}

let isRefused = false;

/**
 * osls prints the stack of what goes wrong, for each place that reads it: of a parameter that cannot be used one sentence
 * is all that helps. Nothing is made of the empty objects that the other places get.
 */
function plain(make) {
  return async (tools) => {
    try {
      return await make(tools);
    } catch (error) {
      if (error.name !== "ConfigError") throw error;
      if (isRefused) return {};
      isRefused = true;
      error.stack = error.message;
      throw error;
    }
  };
}

function environment(name) {
  return plain(async (tools) => {
    const { DEPLOYED } = await import("./deployed.ts");
    const { environmentOf } = await import("./functions.ts");
    const { checkEnvironment } = await import("./deploy/parameters.ts");
    const deployed = DEPLOYED.find((one) => one.name === name);
    const settings = await settingsOf(tools);
    const own = environmentOf(deployed, settings);
    // A package may be looked at, and a dry run made from it, without a cluster.
    const isDeployed = process.argv.includes("deploy");
    checkEnvironment(deployed, own, { common: await commonOf(tools), isDeployed, clusters: settings.clusters });
    return own;
  });
}

module.exports = {
  resources: plain(async (tools) => {
    const { template } = await import("./template.ts");
    return template(await settingsOf(tools));
  }),
  tags: plain(async (tools) => {
    const { readTags } = await import("./door-settings.ts");
    return readTags(reader(tools));
  }),
  checker: plain(async (tools) => {
    const { checkerFunction } = await import("./canary/resources.ts");
    return checkerFunction(await settingsOf(tools));
  }),
  mutatePod: environment("mutate-pod"),
  mutateSidecarSet: environment("mutate-sidecarset"),
  validateSidecarSet: environment("validate-sidecarset"),
  convertSidecarSet: environment("convert-sidecarset"),
  rollout: environment("rollout"),
  dryRun: environment("dry-run"),
  orderedSet: environment("ordered-set"),
};
