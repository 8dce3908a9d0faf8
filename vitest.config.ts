import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/build.ts"],
    setupFiles: ["test/support/testers.ts"],
    // Only what hangs should fail by it: a machine that others use too may take several times as long as a quiet one.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // Test files that run in one worker share their modules: loading them anew costs more than a second a file.
    isolate: false,
    // Two cores: a process of the service and its test on each.
    maxWorkers: 2,
    minWorkers: 1
  }
})
