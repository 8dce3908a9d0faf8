import { defineConfig } from "vitest/config"
import { BaseSequencer } from "vitest/node"
import type { TestSpecification } from "vitest/node"

/** The slowest files, slowest first. If a slow file started last, it would keep one worker busy while the others idle. */
const longest = [
  "ledger/NodesStories",
  "e2e/Kills",
  "upgrade/Kills",
  "e2e/Package",
  "e2e/Operator",
  "e2e/Binary",
  "e2e/Upgrade",
  "e2e/Process",
  "e2e/Workers",
  "simulation/Stories",
  "autoreload/AutoReloads.story",
  "conformance/Payments",
  "ledger/Books.story",
  "e2e/Books",
  "conformance/Texts",
  "console/",
  "chat/Vendors",
  "conformance/",
  "testing/",
  "e2e/",
  "story"
]

class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const rankOf = ({ moduleId }: TestSpecification): number => {
      const rank = longest.findIndex((part) => moduleId.split("/test/").at(-1)!.includes(part))
      return rank === -1 ? longest.length : rank
    }
    return (await super.sort(files)).toSorted((one, other) => rankOf(one) - rankOf(other))
  }
}

/** The files that `npm test` also runs on PostgreSQL: some of each domain that moves money. `npm run test:postgres` runs all files there. */
const onPostgresToo = [
  "test/money/autoreload/Unanswered.test.ts",
  "test/e2e/Tags.test.ts",
  "test/conformance/Fallbacks.test.ts",
  "test/conformance/Texts.test.ts",
  "test/conformance/Transfers.test.ts",
  "test/books/gate/Unavailable.test.ts",
  "test/http/idempotency/*.test.ts",
  "test/books/ledger/Audit.test.ts",
  "test/books/ledger/Budgets*.test.ts",
  "test/books/ledger/Operations.test.ts",
  "test/books/log/*.test.ts",
  "test/operations/operator/Console.test.ts",
  "test/money/allowances/Allowances*.test.ts",
  "test/money/budgets/*.test.ts",
  "test/money/exports/Exports.test.ts",
  "test/money/payments/*.test.ts",
  "test/money/pooling/*.test.ts",
  "test/people/runs/*.test.ts",
  "test/e2e/Runs.test.ts",
  "test/people/tenants/Applications.test.ts",
  "test/people/tenants/Limits.test.ts",
  "test/people/tenants/Organisations.test.ts",
  "test/money/receipts/Witnesses.test.ts",
  "test/money/transfers/*.test.ts",
  "test/money/usage/LabelledSums.test.ts",
  "test/money/vouchers/*.test.ts",
  "test/operations/provisioning/Provisioning.test.ts",
  "test/operations/scim/*.test.ts",
  "test/operations/reconciliation/Planted.test.ts"
]

/** The files of `npm run test:long`. Most take half a minute or more. */
const long = [
  "test/books/log/Go.test.ts",
  "test/app/People.test.ts",
  "test/app/Snippets.test.ts",
  "test/console/Interruptions.test.ts",
  "test/console/Operator.test.ts",
  "test/console/Playground.test.ts",
  "test/console/Provision.test.ts",
  "test/console/SignIn.test.ts",
  "test/console/Views.test.ts",
  "test/e2e/Backup.test.ts",
  "test/e2e/Binary.test.ts",
  "test/e2e/Keys.test.ts",
  "test/e2e/Kills.test.ts",
  "test/e2e/Moving.test.ts",
  "test/e2e/Operator.test.ts",
  "test/e2e/Package.test.ts",
  "test/e2e/Upgrade.test.ts",
  "test/e2e/Verifier.test.ts",
  "test/e2e/Workers.test.ts",
  "test/fuzz/Requests.test.ts",
  "test/books/ledger/Nodes.test.ts",
  "test/books/ledger/NodesStories.test.ts",
  "test/money/allowances/YearOfNodes.test.ts",
  "test/money/autoreload/AutoReloads.story.test.ts",
  "test/money/budgets/Raises.test.ts",
  "test/simulation/Stories.test.ts",
  "test/upgrade/Kills.test.ts",
  "test/upgrade/Postgres.test.ts",
  "test/upgrade/Sqlite.test.ts"
]
/** Files with some long tests, which run only with `TEST_LONG`. */
const partlyLong = ["test/e2e/Nodes.test.ts", "test/operations/provisioning/Provisioning.test.ts"]

const shared = {
  setupFiles: ["test/support/testers.ts"],
  // Only a hanging test should reach this limit. A shared machine may be several times slower than a quiet one.
  testTimeout: 600_000,
  hookTimeout: 600_000,
  expect: { poll: { timeout: 20_000 } }
}

const everything = { ...shared, include: ["test/**/*.test.ts"] }

const onPostgres = { env: { TEST_DATABASE: "postgres" }, globalSetup: ["test/support/postgres.ts"] }

const fewer = String(0.1 * Number(process.env["FC_RUNS"] ?? 1))

const isLong = process.env["TEST_LONG"] === "1"
const isAllOnPostgres = process.env["TEST_DATABASE"] === "postgres"

export default defineConfig({
  test: {
    projects: isLong
      ? [{ test: { ...shared, include: [...long, ...partlyLong], name: "long" } }]
      : isAllOnPostgres
        ? [{ test: { ...everything, ...onPostgres, name: "postgres" } }]
        : [
            { test: { ...everything, exclude: long, name: "sqlite" } },
            // Fewer stories: the same properties already ran on SQLite.
            {
              test: {
                ...shared,
                ...onPostgres,
                name: "postgres",
                include: onPostgresToo,
                env: { ...onPostgres.env, FC_RUNS: fewer }
              }
            }
          ],
    globalSetup: ["test/support/build.ts"],
    // Test files in one worker share its modules, because a separate worker would cost each file two seconds. (All projects share one pool of
    // workers, so this is not a setting of a project.)
    isolate: false,
    // The service's setting. Objects of waiting calls live long in the young generation, and a small one is collected in vain.
    poolOptions: { forks: { execArgv: ["--max-semi-space-size=64"] } },
    sequence: { sequencer: LongestFirst },
    // For two cores. Some tests wait for a process or a time limit while others compute.
    maxWorkers: 4,
    // Keep all workers until the end: vitest stops an idle worker above the minimum, even if it has just received a file.
    minWorkers: 4
  }
})
