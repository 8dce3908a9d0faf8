/** Routes of runs. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example } from "../../http/contract/Documented.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { RunId } from "../../kernel/Ids.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { InvalidKey } from "../credentials/Problems.ts"
import { KeyOrTokenOfKeys } from "../credentials/Security.ts"
import { RunNeedsKey, RunNotFound, TooManyRuns } from "./Problems.ts"
import { NewRun, Run, RunDetails, RunPage, RunQuery, RunWithKey } from "./Run.ts"

const ofRun = Schema.Struct({ run_id: RunId })

export class RunsApi extends HttpApiGroup.make("runs")
  .add(
    HttpApiEndpoint.post("create", "/v1/runs")
      .setPayload(NewRun)
      .addSuccess(
        Envelope(RunWithKey).annotations(HttpApiSchema.annotations({ status: 201, identifier: "RunCreated" }))
      )
      .addError(InvalidRequest)
      .addError(RunNeedsKey)
      .addError(InvalidKey)
      .addError(TooManyRuns)
      .annotate(Example, {
        body: {
          name: "nightly report",
          limit: { usd: 0.5, requests: 100 },
          expires_in: 900,
          tags: { project: "atlas" }
        }
      })
      .annotate(OpenApi.Summary, "Make a run with a budget and a key of its own; only this response shows the key")
      .annotate(
        OpenApi.Description,
        "Sent with an API key or the key of a run. Calls with the run's key count against its limit and the limits of all runs and of the key " +
          "above it, and all must admit a call. A limit cannot be wider than one above it. Nothing is moved: what a run does not use is not lost."
      )
  )
  .add(
    HttpApiEndpoint.get("list", "/v1/runs")
      .setUrlParams(RunQuery)
      .addSuccess(Envelope(RunPage))
      .addError(InvalidRequest)
      .annotate(
        OpenApi.Summary,
        "Runs, newest first: of the API key, of the run and those below it, or of all my keys in the tenant"
      )
  )
  .add(
    HttpApiEndpoint.get("run", "/v1/runs/:run_id")
      .setPath(ofRun)
      .addSuccess(Envelope(RunDetails))
      .addError(RunNotFound)
      .annotate(OpenApi.Summary, "A run: its limit, what it spent by model with the runs below it, and its children")
  )
  .add(
    HttpApiEndpoint.del("end", "/v1/runs/:run_id")
      .setPath(ofRun)
      .addSuccess(Envelope(Run))
      .addError(RunNotFound)
      .annotate(OpenApi.Summary, "End a run and all runs below it; calls that are open go on and are charged")
  )
  .middleware(KeyOrTokenOfKeys) {}
