/** What serverless.yml reads with ${file(infra/aws/serverless.cjs):…}: osls requires CommonJS. */

async function settingsOf({ resolveVariable }) {
  const { readSettings } = await import("./settings.ts");
  const stage = (await resolveVariable("opt:stage, null")) ?? "prod";
  const read = async (name) => String((await resolveVariable(`param:${name}, null`)) ?? "");
  return readSettings("sidecarset", stage, read);
}

function environment(name) {
  return async (tools) => {
    const { DEPLOYED, environmentOf } = await import("./functions.ts");
    return environmentOf(
      DEPLOYED.find((deployed) => deployed.name === name),
      await settingsOf(tools),
    );
  };
}

module.exports = {
  resources: async (tools) => {
    const { template } = await import("./template.ts");
    return template(await settingsOf(tools));
  },
  mutatePod: environment("mutate-pod"),
  mutateSidecarSet: environment("mutate-sidecarset"),
  validateSidecarSet: environment("validate-sidecarset"),
  convertSidecarSet: environment("convert-sidecarset"),
  rollout: environment("rollout"),
  dryRun: environment("dry-run"),
  orderedSet: environment("ordered-set"),
};
