/**
 * Serves a job's files. The service proxies them, because the console's page cannot load files from other origins. Browsers display only images,
 * videos and audio, and download any other file.
 */
import { Effect } from "effect"
import type { Readable } from "node:stream"
import { holds } from "../../kernel/Holds.ts"
import type { AccountId } from "../../kernel/Ids.ts"
import * as Download from "../../upstream/wire/Download.ts"
import { endings } from "./FileTypes.ts"
import { MediaRateLimited, MediaUnavailable } from "./Problems.ts"

export interface MediaContent {
  /** A type that browsers display without running any code, or `application/octet-stream`. */
  readonly content_type: string
  readonly length: number | undefined
  readonly file_name: string
  /** The stream fails if the vendor aborts the transfer. Destroying the stream aborts the download. */
  readonly body: Readable
}

const bytesMax = 1024 * 1024 * 1024
/** The maximum number of concurrent downloads: per account, and in total in this process. */
const accountMax = 4
const processMax = 64

/** Returns the URLs in an output: the video, the audio, then the images in order. */
export const addressesOf = (output: Readonly<Record<string, unknown>>): ReadonlyArray<string> => {
  const { audio, images, video } = output
  const files = [video, audio, ...(Array.isArray(images) ? images : [])] as ReadonlyArray<{ url?: unknown } | undefined>
  return files.map((file) => file?.url).filter((url) => typeof url === "string")
}

export const make = Effect.map(holds, ({ take }) => {
  let all = 0

  /** Counts a download against the limits until its stream closes. Fails with `MediaRateLimited` if a limit is reached. */
  const counted = <A extends { readonly body: Readable }, E>(account: AccountId, file: Effect.Effect<A, E>) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(take(`files ${account}`, accountMax), (giveBack): Effect.Effect<A, E | MediaRateLimited> => {
        if (giveBack === undefined || all >= processMax) {
          giveBack?.()
          return Effect.fail(new MediaRateLimited({ retry_after: 5 }))
        }
        all++
        const over = () => {
          all--
          giveBack()
        }
        return restore(file).pipe(
          Effect.tap(({ body }) => Effect.sync(() => void body.once("close", over))),
          Effect.onError(() => Effect.sync(over))
        )
      })
    )

  /** Opens the file at a vendor's URL. `host` is the upstream's host, and `name` is the file name without its extension. */
  const open = (account: AccountId, url: string, host: string, name: string) =>
    counted(account, Download.open(url, host, bytesMax)).pipe(
      Effect.map(({ body, content_type, length }): MediaContent => {
        const ending = endings[content_type]
        return {
          content_type: ending === undefined ? "application/octet-stream" : content_type,
          length,
          file_name: `${name}.${ending ?? "bin"}`,
          body
        }
      }),
      Effect.catchTag("Unreachable", ({ reason }) =>
        Effect.zipRight(
          Effect.annotateLogs(Effect.logWarning("the output of a job could not be fetched"), { job: name, reason }),
          new MediaUnavailable()
        )
      )
    )

  return { open }
})
