/** The version of the service. `test/package.test.ts` compares it with package.json. */
export const version = "0.1.0"
