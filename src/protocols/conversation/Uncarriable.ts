/** The reason why a request cannot be read or translated, and the field that causes it. */

export interface Uncarriable {
  /** The field's path in the client's protocol, such as `messages.2.content.0`, or empty for the request itself. */
  readonly field: string
  /** The reason, worded to follow the field's name, such as `the upstream of this model accepts no audio`. */
  readonly why: string
}

/** Records the first finding while a request is read or written. */
export class Findings {
  first: Uncarriable | undefined = undefined

  add(field: string, why: string): void {
    this.first ??= { field, why }
  }
}
