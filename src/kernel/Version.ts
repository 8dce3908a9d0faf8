/** The version that the service says it is; `test/package.test.ts` holds it against package.json. */
export const version = "0.1.0"
