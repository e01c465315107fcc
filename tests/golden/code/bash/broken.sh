whole() {
    echo works
}

half() {
    if [ "$1" ; then
        echo "lost

after() {
    echo after
}
