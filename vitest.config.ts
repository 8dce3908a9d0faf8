import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/build.ts"],
    // Only what hangs should fail by it: a machine that others use too may take several times as long as a quiet one.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // Two cores: a process of the service and its test on each.
    maxWorkers: 2,
    minWorkers: 1
  }
})
