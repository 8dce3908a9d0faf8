/**
 * The files of a job, served by the service itself: the console's page loads nothing from elsewhere, so it cannot ask a vendor. Only
 * pictures, films and sounds are shown as what they are; everything else is a file to be saved.
 */
import { Effect } from "effect"
import type { Readable } from "node:stream"
import type { AccountId } from "../../kernel/Ids.ts"
import * as Download from "../../upstream/wire/Download.ts"
import { endings } from "./FileTypes.ts"
import { MediaRateLimited, MediaUnavailable } from "./Problems.ts"

export interface MediaContent {
  /** One that a browser shows without running anything of it, or `application/octet-stream`. */
  readonly content_type: string
  readonly length: number | undefined
  /** The name of a file. */
  readonly file_name: string
  /** Ends with an error where the vendor broke off. To destroy it is to leave. */
  readonly body: Readable
}

/** The longest file, in bytes. */
const bytesMax = 1024 * 1024 * 1024
/** How many files come at once: of an account, and of all. */
const ownMax = 4
const allMax = 64

/** The addresses in an output: of its film, its sound, or its pictures in their order. */
export const addressesOf = (output: Readonly<Record<string, unknown>>): ReadonlyArray<string> => {
  const { audio, images, video } = output
  const files = [video, audio, ...(Array.isArray(images) ? images : [])] as ReadonlyArray<{ url?: unknown } | undefined>
  return files.map((file) => file?.url).filter((url) => typeof url === "string")
}

export const make = () => {
  const running = new Map<AccountId, number>()
  let all = 0

  /** Counts a file of an account until its bytes have ended. */
  const counted = <A extends { readonly body: Readable }, E>(account: AccountId, file: Effect.Effect<A, E>) =>
    Effect.suspend((): Effect.Effect<A, E | MediaRateLimited> => {
      const own = running.get(account) ?? 0
      if (own >= ownMax || all >= allMax) return Effect.fail(new MediaRateLimited({ retry_after: 5 }))
      running.set(account, own + 1)
      all++
      const over = () => {
        all--
        const left = running.get(account)! - 1
        if (left === 0) running.delete(account)
        else running.set(account, left)
      }
      return file.pipe(
        Effect.tap(({ body }) => Effect.sync(() => void body.once("close", over))),
        Effect.onError(() => Effect.sync(over))
      )
    })

  /** The file at an address that the vendor gave. `host`: where that vendor is asked. `name`: what it is called, without its ending. */
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
          Effect.annotateLogs(Effect.logWarning("what a job has made could not be fetched"), { job: name, reason }),
          new MediaUnavailable()
        )
      )
    )

  return { open }
}
