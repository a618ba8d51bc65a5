/**
 * Writes and waits until the reader has taken it, so that a gigabyte of log costs no memory. False where the reader has gone away
 * (`bulkhead logs | head`): the caller stops, which is no error.
 */
export function writeOut(stream: NodeJS.WritableStream, data: string | Uint8Array): Promise<boolean> {
  if (!stream.writable) return Promise.resolve(false);
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      // EPIPE, and what Node says on the next write after it.
      if (error.code === "EPIPE" || error.code === "ERR_STREAM_DESTROYED") resolve(false);
      else reject(error);
    };
    // Also emitted as an event, which would end the process where nobody listens.
    stream.once("error", failed);
    stream.write(data, (error) => {
      stream.off("error", failed);
      if (error) {
        stream.once("error", () => undefined /* the same error, told a second time */);
        failed(error);
      } else resolve(true);
    });
  });
}
