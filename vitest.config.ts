import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/build.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores: a process of the service and its test on each.
    maxWorkers: 2,
    minWorkers: 1
  }
})
